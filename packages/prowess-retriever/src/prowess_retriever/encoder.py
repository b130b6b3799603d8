"""The encoder: texts to vectors of length one."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prowess_retriever.model_files import FOLDER, LAYERS, Model, WeightsError, read_model
from prowess_retriever.wordpiece import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from onnxruntime import InferenceSession


class SkillEncoder:
    """Encodes requests and skills into vectors of length one whose dot product says how well they match.

    ``name`` identifies the weights: vectors of encoders with different names must not be compared. An encoder may be
    shared by threads, and used in a process that was forked after it was loaded. ``load_encoder`` makes it.
    """

    def __init__(self, model: Model, session: InferenceSession) -> None:
        self.name = model.name
        self._session = session
        self._tokenizer = Tokenizer(model.vocabulary)
        self._words, self._word_scales, self._positions = model.words, model.word_scales, model.positions
        self._request_tokens, self._skill_tokens = model.request_tokens, model.skill_tokens

    def encode_requests(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each request, on the core of the caller, so that a server's other cores stay free.

        A request is cut at 96 tokens. Raises ``TypeError`` when ``texts`` is a single text.
        """
        _check_strings(texts)
        return self._stack([self._encode(text, self._request_tokens) for text in texts])

    def encode_skills(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text of a skill, on every core that the process may use.

        A text is cut at 256 tokens. To show progress, send some hundred texts at a time. Raises ``TypeError`` when
        ``texts`` is a single text.
        """
        _check_strings(texts)
        workers = min(_count_cores(), len(texts))
        if workers <= 1:
            return self._stack([self._encode(text, self._skill_tokens) for text in texts])
        with ThreadPoolExecutor(workers, "prowess-retriever") as pool:
            return self._stack(list(pool.map(lambda text: self._encode(text, self._skill_tokens), texts)))

    def _encode(self, text: str, length: int) -> NDArray[np.float32]:
        # One text alone: in a batch its numbers would be rounded by the largest of the whole batch, so that its vector
        # would depend on its neighbours, and it would be padded to the length of the longest.
        ids = self._tokenizer.encode(text, length)
        states = self._words[ids] * self._word_scales[ids, None] + self._positions[: len(ids)]
        vector: NDArray[np.float32] = self._session.run(None, {"states": states})[0]
        return vector / np.linalg.norm(vector)

    def _stack(self, vectors: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        return np.stack(vectors) if vectors else np.zeros((0, self._positions.shape[1]), dtype=np.float32)


def _check_strings(texts: Sequence[str]) -> None:
    """A single text is a sequence of texts too: of its characters, which nobody means."""
    if isinstance(texts, str):
        raise TypeError("texts must be a list of strings; this is a single text: put it into a list")


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# -- loading -----------------------------------------------------------------------------------------------------------


def load_encoder(folder: str | os.PathLike[str] | None = None) -> SkillEncoder:
    """Return the encoder of this package, or of the model in ``folder``; each folder is loaded once in a process.

    Raises ``WeightsError`` when a file of the model is absent, damaged or not usable with the installed onnxruntime.
    """
    place = FOLDER if folder is None else Path(folder).absolute()
    with _loading:
        encoder = _loaded.get(place)
        if encoder is None:
            encoder = _loaded[place] = _make_encoder(place)
        return encoder


_loaded: dict[Path, SkillEncoder] = {}
_loading = threading.Lock()
if hasattr(os, "register_at_fork"):
    # A fork waits while a thread loads: else its child would have a lock that nobody opens.
    os.register_at_fork(before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release)


def _make_encoder(folder: Path) -> SkillEncoder:
    from onnxruntime import InferenceSession, SessionOptions

    model = read_model(folder)
    options = SessionOptions()
    # One thread a call. Skills are encoded beside each other, which uses all cores just as well; and a process that is
    # forked has lost no threads that it would wait for.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    try:
        session = InferenceSession(model.layers, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise WeightsError(
            f"{folder / LAYERS}: the installed onnxruntime does not take it ({error}): "
            "update the package onnxruntime, or install prowess-retriever again"
        ) from error
    return SkillEncoder(model, session)
