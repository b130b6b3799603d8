"""The weights as arrays by name: read as they are published or as ``train.py`` saves them.

The names are those of the parameters in ``encoder.py``.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Weights = dict[str, NDArray[np.float32]]

LAYERS = 6
PART_BYTES = 15 * 2**20
"""Saved weights are cut into files of this size, which is small enough for every way to carry them off a machine."""

_SIDES = ("weight", "bias")
_OF_A_LAYER = {
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
    "output_norm": "output.LayerNorm",
}
"""Our names for the parts of a layer, and the published ones."""


def read_weights(path: Path) -> Weights:
    """Return the weights of a published ``.safetensors`` file, or of what ``save_weights`` wrote to ``path``."""
    if path.suffix == ".safetensors":
        return rename_weights(_read_safetensors(path))
    parts = sorted(path.parent.glob(f"{path.name}.*"))
    if not parts:
        raise SystemExit(f"{path}: there are no weights, neither a .safetensors file nor {path.name}.00 and so on")
    with np.load(io.BytesIO(b"".join(part.read_bytes() for part in parts))) as arrays:
        return {name: arrays[name].astype(np.float32) for name in arrays.files}


def save_weights(path: Path, weights: Mapping[str, NDArray[np.float32]]) -> None:
    """Write ``weights`` with 16 bits each to ``path`` with the endings ``.00``, ``.01`` and so on."""
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **{name: values.astype(np.float16) for name, values in weights.items()})
    data = packed.getvalue()
    for number, start in enumerate(range(0, len(data), PART_BYTES)):
        path.with_name(f"{path.name}.{number:02}").write_bytes(data[start : start + PART_BYTES])


def rename_weights(published: Weights) -> Weights:
    """Return published weights of BERT under the names of our parameters."""
    weights = {
        "words.weight": published["embeddings.word_embeddings.weight"],
        "positions.weight": published["embeddings.position_embeddings.weight"],
        "kind": published["embeddings.token_type_embeddings.weight"][0],
        **{f"norm.{side}": published[f"embeddings.LayerNorm.{side}"] for side in _SIDES},
    }
    for layer in range(LAYERS):
        theirs, ours = f"encoder.layer.{layer}", f"layers.{layer}"
        for side in _SIDES:
            parts = [published[f"{theirs}.attention.self.{name}.{side}"] for name in ("query", "key", "value")]
            weights[f"{ours}.query_key_value.{side}"] = np.concatenate(parts)
            weights |= {f"{ours}.{name}.{side}": published[f"{theirs}.{other}.{side}"] for name, other in _OF_A_LAYER.items()}
    return weights


def _read_safetensors(path: Path) -> Weights:
    """The float arrays of the file: the length of its head, its head in JSON, and then the numbers."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:start])
    return {
        name: np.frombuffer(data, np.float32, int(np.prod(entry["shape"])), start + entry["data_offsets"][0]).reshape(
            entry["shape"]
        )
        for name, entry in entries.items()
        if entry.get("dtype") == "F32"
    }
