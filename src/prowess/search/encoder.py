"""Encoders: what turns requests and skills into vectors, and the one that the extra ``semantic`` installs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from prowess.arguments import raise_bad_argument
from prowess.errors import SourceError
from prowess.hints import explain_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from prowess.literals import Semantic


class Encoder(Protocol):
    """Turns texts into vectors of length one. The nearer the cosine of two is to 1, the more alike the texts are.

    Both methods return one row for each text, and may be called from several threads at a time.
    """

    @property
    def name(self) -> str:
        """Identifies the encoder and its weights: only vectors with the same name can be compared."""
        ...

    def encode_requests(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of what people ask for."""
        ...

    def encode_skills(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of skills; a text that is too long for the encoder is cut by it."""
        ...


def has_encoder() -> bool:
    """Return whether the extra ``semantic`` is installed; nothing is loaded to find out."""
    return find_spec("prowess_retriever") is not None


def load_installed_encoder() -> Encoder | None:
    """Return the encoder of the extra ``semantic``; ``None`` when that is not installed.

    Raises ``SourceError`` (``encoder-failed``) when it is installed and cannot be loaded.
    """
    try:
        from prowess_retriever import load_encoder

        encoder: Encoder = load_encoder()
    except ModuleNotFoundError as error:
        if error.name == "prowess_retriever":
            return None
        raise _make_failure(error) from error
    except Exception as error:  # whatever is wrong with an optional part
        raise _make_failure(error) from error
    return encoder


def _make_failure(error: Exception) -> SourceError:
    return SourceError(f"the encoder of prowess-retriever cannot be loaded: {error}", code="encoder-failed")


def require_installed_encoder() -> Encoder:
    """Return the encoder of the extra ``semantic``; raises ``SourceError`` (``missing-extra``) without it."""
    encoder = load_installed_encoder()
    if encoder is None:
        raise SourceError(f"prowess-retriever is not installed: {explain_extra('semantic')}", code="missing-extra")
    return encoder


def check_semantic(semantic: Semantic | Encoder) -> None:
    """Raise ``SourceError`` unless the value is ``"auto"``, ``True``, ``False`` or an encoder."""
    if isinstance(semantic, bool) or semantic == "auto":
        return
    methods = ("encode_requests", "encode_skills")
    name = getattr(semantic, "name", None)
    if isinstance(name, str) and name and all(callable(getattr(semantic, m, None)) for m in methods):
        return
    raise_bad_argument("semantic", "must be 'auto', True, False or a prowess.Encoder", semantic)
