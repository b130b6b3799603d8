"""Write the files of the package's model from float weights: ``python -m training.export VOCABULARY WEIGHTS…``.

It needs the packages numpy, onnx and onnxruntime, and no torch. The weights of the layers and the embeddings of the
words become int8 with a scale for each row. ``--check`` measures what the vectors of skills lose by that.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from prowess_retriever import load_encoder, model_files
from prowess_retriever.wordpiece import Tokenizer
from training.data import REQUEST_TOKENS, SEARCHED_TOKENS, describe_skill, read_records
from training.float_encoder import EPSILON, HEADS, FloatEncoder
from training.weights import LAYERS, read_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from training.weights import Weights

CHECKED = 500
LEAST_COSINE = 0.99
FUSED = "com.microsoft"
"""The operators of onnxruntime itself. Each does in one step what the standard ones do in several."""


def round_rows(values: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return ``values`` in whole numbers from -127 to 127, and the scale of each row."""
    scales = np.maximum(np.abs(values).max(axis=1), 1e-8) / 127
    return np.rint(values / scales[:, None]).astype(np.int8), scales.astype(np.float32)


class LayerGraph:
    """Builds the graph from ``states``, the summed embeddings of a text, to ``vector``, the mean of its last states."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def build(self) -> bytes:
        width = len(self._weights["norm.weight"])
        norm = [self._constant(f"norm.{side}") for side in ("weight", "bias")]
        states = self._add("LayerNormalization", "states", *norm, epsilon=EPSILON)
        # The operator for attention wants a batch. Each text is a batch of its own, so nothing needs a mask.
        states = self._add("Unsqueeze", states, self._store("first_axis", np.array([0])))
        for layer in range(LAYERS):
            states = self._add_layer(f"layers.{layer}", states, width)
        self._add("ReduceMean", states, self._store("mean_axes", np.array([0, 1])), keepdims=0, output="vector")
        graph = helper.make_graph(
            self._nodes,
            "encoder",
            [helper.make_tensor_value_info("states", TensorProto.FLOAT, ["tokens", width])],
            [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [width])],
            self._constants,
        )
        versions = [helper.make_opsetid("", 18), helper.make_opsetid(FUSED, 1)]
        # Not newer than needed, so that older versions of onnxruntime load it.
        return helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()

    def _add_layer(self, name: str, states: str, width: int) -> str:
        projected = self._multiply(states, f"{name}.query_key_value", bias=True)
        thirds = [f"{name}.{part}" for part in ("query", "key", "value")]
        lengths = self._store(f"{name}.thirds", np.array([width] * 3))
        self._nodes.append(helper.make_node("Split", [projected, lengths], thirds, axis=2))
        attended = self._add("MultiHeadAttention", *thirds, domain=FUSED, num_heads=HEADS)
        states = self._normalize(self._multiply(attended, f"{name}.attention_output"), states, f"{name}.attention")
        hidden = self._multiply(states, f"{name}.intermediate")
        hidden = self._add("BiasGelu", hidden, self._constant(f"{name}.intermediate.bias"), domain=FUSED)
        return self._normalize(self._multiply(hidden, f"{name}.output"), states, f"{name}.output")

    def _multiply(self, states: str, name: str, *, bias: bool = False) -> str:
        """Multiply by a matrix of int8; onnxruntime rounds the states when they come."""
        rounded, scales = round_rows(self._weights[f"{name}.weight"])
        inputs = [
            states,
            self._store(f"{name}.rounded", np.ascontiguousarray(rounded.T)),
            self._store(f"{name}.scales", scales),
            self._store(f"{name}.zeros", np.zeros(len(scales), dtype=np.int8)),
        ]
        if bias:
            inputs.append(self._constant(f"{name}.bias"))
        return self._add("DynamicQuantizeMatMul", *inputs, domain=FUSED)

    def _normalize(self, outcome: str, states: str, name: str) -> str:
        """Add the outcome, its bias and the states, and normalise the sum."""
        output = f"{name}_output" if name.endswith("attention") else name
        constants = [self._constant(f"{name}_norm.{side}") for side in ("weight", "bias")]
        bias = self._constant(f"{output}.bias")
        return self._add("SkipLayerNormalization", outcome, states, *constants, bias, domain=FUSED, epsilon=EPSILON)

    def _add(self, operator: str, *inputs: str, output: str = "", domain: str = "", **attributes: float) -> str:
        output = output or f"step_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def _constant(self, name: str) -> str:
        return self._store(name, self._weights[name])

    def _store(self, name: str, values: NDArray[np.generic]) -> str:
        self._constants.append(numpy_helper.from_array(values, name))
        return name


def pack_embeddings(weights: Weights) -> bytes:
    """Return an ``.npz`` of the embeddings: words in int8, and positions with the kind of text added in float32."""
    words, scales = round_rows(weights["words.weight"])
    positions = weights["positions.weight"][:SEARCHED_TOKENS] + weights["kind"]
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, words=words, word_scales=scales, positions=positions)
    return packed.getvalue()


def write_model(folder: Path, weights: Weights, vocabulary: bytes) -> None:
    """Write the four files of a model into ``folder``."""
    files = {
        model_files.LAYERS: LayerGraph(weights).build(),
        model_files.EMBEDDINGS: pack_embeddings(weights),
        model_files.VOCABULARY: vocabulary,
    }
    manifest = {
        "format": model_files.FORMAT,
        "request_tokens": REQUEST_TOKENS,
        "skill_tokens": SEARCHED_TOKENS,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    files[model_files.MANIFEST] = f"{json.dumps(manifest, indent=2)}\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
        print(f"{folder / name}: {len(data):,} bytes")


def measure_agreement(folder: Path, weights: Weights, skills: Path) -> NDArray[np.float64]:
    """Return the cosines between the vectors of the model in ``folder`` and those of ``weights``, for some skills."""
    texts = [describe_skill(record) for record in read_records(skills)]
    texts = texts[:: max(len(texts) // CHECKED, 1)][:CHECKED]
    exact = FloatEncoder(weights)
    tokenizer = Tokenizer((folder / model_files.VOCABULARY).read_text(encoding="utf-8").splitlines())
    expected = np.stack([exact.encode(tokenizer.encode(text, SEARCHED_TOKENS)) for text in texts])
    return np.sum(expected * load_encoder(folder).encode_skills(texts), axis=1, dtype=np.float64)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m training.export", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("vocabulary", type=Path, help="the vocab.txt of the base model")
    parser.add_argument("weights", type=Path, nargs="+", help="the files of the base, then those that train.py saved")
    parser.add_argument("--folder", type=Path, default=model_files.FOLDER, help="where to write (%(default)s)")
    parser.add_argument("--check", type=Path, metavar="SKILLS", help="a skills.jsonl.xz to compare vectors on")
    options = parser.parse_args(arguments)
    weights = read_weights(options.weights)
    write_model(options.folder, weights, options.vocabulary.read_bytes())
    print(load_encoder(options.folder).name)
    if options.check:
        cosines = measure_agreement(options.folder, weights, options.check)
        print(f"cosine with 32 bits over {len(cosines)} skills: mean {cosines.mean():.4f}, least {cosines.min():.4f}")
        return int(cosines.mean() < LEAST_COSINE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
