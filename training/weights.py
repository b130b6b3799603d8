"""The weights as arrays by name, as they are published and as ``train.py`` saves them.

The names are those of the parameters in ``encoder.py``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

Weights = dict[str, NDArray[np.float32]]

LAYERS = 6
PART_BYTES = 15 * 2**20
"""Saved weights are cut into files of at most this size, which every way to carry files off a machine takes."""

_SIDES = ("weight", "bias")
_PUBLISHED = "embeddings.word_embeddings.weight"
_OF_A_LAYER = {
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
    "output_norm": "output.LayerNorm",
}
"""Our names for the parts of a layer, and the published ones."""


def read_weights(paths: Sequence[Path]) -> Weights:
    """Return the weights of several files; where two files have an array of one name, the later file counts.

    A file is a published ``.safetensors`` file, an ``.npz`` file with the same names, or a part that ``save_weights``
    wrote. The base and the parts of what was tuned are given together, because only the latter is saved.
    """
    weights: Weights = {}
    pieces: Weights = {}
    for path in paths:
        arrays = _read_safetensors(path) if path.suffix == ".safetensors" else _read_npz(path)
        if _PUBLISHED in arrays:
            arrays = rename_weights(arrays)
        pieces |= {name: values for name, values in arrays.items() if "/" in name}
        weights |= {name: values for name, values in arrays.items() if "/" not in name}
    for name in {name.partition("/")[0] for name in pieces}:
        numbers = sorted(int(piece.partition("/")[2]) for piece in pieces if piece.startswith(f"{name}/"))
        weights[name] = np.concatenate([pieces[f"{name}/{number}"] for number in numbers])
    return weights


def save_weights(folder: Path, run: str, weights: Mapping[str, NDArray[np.float32]]) -> None:
    """Write ``weights`` with 16 bits each into ``folder``: ``weights-RUN-0.npz``, ``weights-RUN-1.npz`` and so on."""
    parts: list[dict[str, NDArray[np.float16]]] = [{}]
    size = 0
    for name, values in _cut_arrays(weights):
        if size + values.nbytes > PART_BYTES:
            parts.append({})
            size = 0
        parts[-1][name] = values
        size += values.nbytes
    for number, part in enumerate(parts):
        np.savez(folder / f"weights-{run}-{number}.npz", allow_pickle=False, **part)


def _cut_arrays(weights: Mapping[str, NDArray[np.float32]]) -> Iterator[tuple[str, NDArray[np.float16]]]:
    """The arrays in 16 bits; one that is too large for a part comes in pieces, as ``NAME/0``, ``NAME/1`` and so on."""
    for name, values in weights.items():
        half = values.astype(np.float16)
        if half.nbytes <= PART_BYTES:
            yield name, half
        else:
            pieces = np.array_split(half, -(-half.nbytes // (PART_BYTES // 2)))
            yield from ((f"{name}/{number}", piece) for number, piece in enumerate(pieces))


def rename_weights(published: Weights) -> Weights:
    """Return published weights of BERT under the names of our parameters."""
    weights = {
        "words.weight": published[_PUBLISHED],
        "positions.weight": published["embeddings.position_embeddings.weight"],
        "kind": published["embeddings.token_type_embeddings.weight"][0],
        **{f"norm.{side}": published[f"embeddings.LayerNorm.{side}"] for side in _SIDES},
    }
    for layer in range(LAYERS):
        theirs, ours = f"encoder.layer.{layer}", f"layers.{layer}"
        for side in _SIDES:
            parts = [published[f"{theirs}.attention.self.{name}.{side}"] for name in ("query", "key", "value")]
            weights[f"{ours}.query_key_value.{side}"] = np.concatenate(parts)
            for name, other in _OF_A_LAYER.items():
                weights[f"{ours}.{name}.{side}"] = published[f"{theirs}.{other}.{side}"]
    return weights


def _read_npz(path: Path) -> Weights:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name].astype(np.float32) for name in arrays.files}


def _read_safetensors(path: Path) -> Weights:
    """The float arrays of the file: the length of its head, its head in JSON, and then the numbers."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    weights = {}
    for name, entry in json.loads(data[8:start]).items():
        if entry.get("dtype") == "F32":
            count = int(np.prod(entry["shape"]))
            numbers = np.frombuffer(data, np.float32, count, start + entry["data_offsets"][0])
            weights[name] = numbers.reshape(entry["shape"])
    return weights
