"""The encoder in numpy with 32 bits.

``export.py`` compares the package's model with it, because it needs no torch. ``bench/encoders.py`` measures it as the
other engine that the package could have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from training.weights import LAYERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from training.weights import Weights

    Floats = NDArray[np.float32]

HEADS = 12
EPSILON = 1e-12


class FloatEncoder:
    """Encodes rows of token ids, one at a time."""

    def __init__(self, weights: Weights) -> None:
        # A product with a transposed copy is faster than one with a transposed view.
        self._weights = {
            name: np.ascontiguousarray(values.T) if name.startswith("layers.") and values.ndim == 2 else values
            for name, values in weights.items()
        }

    def encode(self, ids: Sequence[int]) -> Floats:
        """Return the vector of length one of a text's token ids."""
        weights = self._weights
        states = weights["words.weight"][list(ids)] + weights["positions.weight"][: len(ids)] + weights["kind"]
        states = self._normalize(states, "norm")
        for layer in range(LAYERS):
            states = self._pass_layer(states, f"layers.{layer}")
        mean = states.mean(axis=0)
        vector: Floats = mean / np.linalg.norm(mean)
        return vector

    def _pass_layer(self, states: Floats, name: str) -> Floats:
        attended = self._multiply(self._attend(states, name), f"{name}.attention_output")
        states = self._normalize(states + attended, f"{name}.attention_norm")
        hidden = self._multiply(states, f"{name}.intermediate")
        hidden *= 0.5 + 0.5 * compute_erf(hidden * np.float32(0.5**0.5))
        return self._normalize(states + self._multiply(hidden, f"{name}.output"), f"{name}.output_norm")

    def _attend(self, states: Floats, name: str) -> Floats:
        length, width = states.shape
        projected = self._multiply(states, f"{name}.query_key_value").reshape(length, 3, HEADS, width // HEADS)
        query, key, value = projected.transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1) * np.float32((width // HEADS) ** -0.5)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        attended = (scores @ value).transpose(1, 0, 2).reshape(length, width)
        return attended.astype(np.float32, copy=False)

    def _multiply(self, states: Floats, name: str) -> Floats:
        product: Floats = states @ self._weights[f"{name}.weight"]
        product += self._weights[f"{name}.bias"]
        return product

    def _normalize(self, states: Floats, name: str) -> Floats:
        centred = states - states.mean(axis=-1, keepdims=True)
        centred /= np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + EPSILON)
        return centred * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def compute_erf(values: Floats) -> Floats:
    """Return the error function, which numpy lacks, to within 2e-7, by formula 7.1.26 of Abramowitz and Stegun."""
    sizes = np.abs(values)
    steps = 1 / (1 + np.float32(0.3275911) * sizes)
    series = np.full_like(sizes, 1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series *= steps
        series += np.float32(factor)
    outcome: Floats = np.copysign(1 - series * steps * np.exp(-sizes * sizes), values)
    return outcome
