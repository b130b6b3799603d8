"""An encoder for measuring costs: its vectors of requests are real, and those of skills are drawn by chance.

To encode 100,000 skills takes hours, and what a search costs does not depend on what their vectors are.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


class SketchEncoder:
    """Encodes requests with the installed encoder; the vector of a skill is drawn by chance, seeded by its text."""

    def __init__(self) -> None:
        """Load the installed encoder. Raises ``ImportError`` when there is none."""
        import prowess_retriever

        self._encoder = prowess_retriever.load_encoder()
        self._width = self._encoder.encode_requests([""]).shape[1]
        self.name = f"sketch-{self._encoder.name}"

    def encode_requests(self, texts: Sequence[str]) -> Any:
        """Return the vectors of the installed encoder."""
        return self._encoder.encode_requests(texts)

    def encode_skills(self, texts: Sequence[str]) -> Any:
        """Return a vector of length one for each text, the same for the same text."""
        import numpy as np

        rows = [
            np.random.default_rng(zlib.crc32(text.encode("utf-8", "replace"))).standard_normal(self._width)
            for text in texts
        ]
        vectors = np.stack(rows).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
