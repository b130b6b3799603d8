"""The files of the model: how they are read, and what is said when they are absent or damaged.

A model is a folder with four files, which ``training/export.py`` of the repository writes:

- ``model.json`` has the lengths at which texts are cut, and the SHA-256 digests of the other files;
- ``layers.onnx`` is the graph of the layers, from the sum of the embeddings to the mean of the last states;
- ``embeddings.npz`` has the embeddings of the words (int8, with a scale for each) and of the positions;
- ``vocabulary.txt`` has one token a line.
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
    """The files of the model are absent, damaged, or of a format that this version does not read."""


@dataclass(frozen=True)
class Model:
    """A model that was read. ``name`` identifies everything that decides its vectors."""

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
    manifest = _read_file(folder / MANIFEST)
    try:
        described: dict[str, Any] = json.loads(manifest)
        model_format, digests = described["format"], described["sha256"]
        lengths = int(described["request_tokens"]), int(described["skill_tokens"])
    except (ValueError, KeyError, TypeError):
        raise WeightsError(f"{folder / MANIFEST}: the file is damaged: {_REMEDY}") from None
    if model_format != FORMAT:
        raise WeightsError(
            f"{folder / MANIFEST}: the model has the format {model_format}, and this version of prowess-retriever "
            f"reads the format {FORMAT}: {_REMEDY}"
        )
    layers, embeddings, vocabulary = (
        _read_checked(folder / name, digests.get(name)) for name in (LAYERS, EMBEDDINGS, VOCABULARY)
    )
    with np.load(io.BytesIO(embeddings), allow_pickle=False) as arrays:
        return Model(
            f"prowess-retriever-{hashlib.sha256(manifest).hexdigest()[:12]}",
            *lengths,
            layers,
            arrays["words"],
            arrays["word_scales"],
            arrays["positions"],
            vocabulary.decode().splitlines(),
        )


def _read_checked(path: Path, digest: str | None) -> bytes:
    data = _read_file(path)
    if hashlib.sha256(data).hexdigest() != digest:
        raise WeightsError(f"{path}: the file is damaged, or belongs to another model: {_REMEDY}")
    return data


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise WeightsError(f"{path}: the file cannot be read ({error.strerror}): {_REMEDY}") from None
