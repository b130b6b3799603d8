"""The files of the model: where they lie, and what is said when they are absent or damaged.

``model.json`` names the other files with their SHA-256 digests. A model is the folder of these files:

- ``layers.onnx``: the graph of the layers, from the sum of the embeddings to the mean of the last states;
- ``embeddings.npz``: the embeddings of the words (int8, with a scale for each) and of the positions;
- ``vocabulary.txt``: one token a line.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = Path(__file__).with_name("model")
FORMAT = 1
MANIFEST, LAYERS, EMBEDDINGS, VOCABULARY = "model.json", "layers.onnx", "embeddings.npz", "vocabulary.txt"
_REMEDY = "install prowess-retriever again, which brings the files of its model"


class WeightsError(Exception):
    """The files of the model are absent, damaged, or of a version that this package does not read."""


@dataclass(frozen=True)
class Model:
    """A model that was read: its name, the lengths at which it cuts texts, and its parts."""

    name: str
    request_tokens: int
    skill_tokens: int
    layers: bytes
    words: NDArray[np.int8]
    word_scales: NDArray[np.float32]
    positions: NDArray[np.float32]
    vocabulary: list[str]


def read_model(folder: Path) -> Model:
    """Return the model in ``folder``. Raises ``WeightsError`` when a file is absent or is not what it should be."""
    manifest = _read_file(folder, MANIFEST)
    try:
        described: dict[str, Any] = json.loads(manifest)
        if described["format"] != FORMAT:
            raise WeightsError(
                f"{folder / MANIFEST}: the model has format {described['format']}, and this version of "
                f"prowess-retriever reads format {FORMAT}: {_REMEDY}"
            )
        files = {name: _read_checked(folder, name, described["sha256"][name]) for name in _CONTENT}
        with np.load(io.BytesIO(files[EMBEDDINGS]), allow_pickle=False) as arrays:
            return Model(
                name=f"prowess-retriever-{hashlib.sha256(manifest).hexdigest()[:12]}",
                request_tokens=described["request_tokens"],
                skill_tokens=described["skill_tokens"],
                layers=files[LAYERS],
                words=arrays["words"],
                word_scales=arrays["word_scales"],
                positions=arrays["positions"],
                vocabulary=files[VOCABULARY].decode().splitlines(),
            )
    except (ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"{folder / MANIFEST}: it does not describe a model ({error!r}): {_REMEDY}") from None


_CONTENT = (LAYERS, EMBEDDINGS, VOCABULARY)


def _read_checked(folder: Path, name: str, digest: str) -> bytes:
    data = _read_file(folder, name)
    if hashlib.sha256(data).hexdigest() != digest:
        raise WeightsError(f"{folder / name}: the file is damaged, or belongs to another model: {_REMEDY}")
    return data


def _read_file(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise WeightsError(f"{folder / name}: the file cannot be read ({error.strerror}): {_REMEDY}") from None
