"""Vectors of skills: one byte for each number, as the index keeps them, and their cosines with a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prowess.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from prowess.search.encoder import Encoder
    from prowess.search.ranking import RowPlace

    Vectors = NDArray[np.float32]

_LARGEST = 127
_TABLE = 2  # dimensions: rows, and the numbers of each
_SCALE_BYTES = 4
_ROWS_PER_PRODUCT = 256
"""Rows that become floats at a time: they fit into the cache of a processor, and a product of floats is the fastest."""
_COSINE_DIGITS = 5
"""Digits of a cosine that count. What a product adds first depends on where a row is, and copies must stay equal."""


def encode_texts(encoder: Encoder, texts: Sequence[str]) -> list[bytes]:
    """Return the packed vectors of the texts of skills.

    Raises ``SourceError`` for an encoder that returns something else.
    """
    encoded = np.asarray(encoder.encode_skills(texts), np.float32)
    if encoded.ndim != _TABLE or len(encoded) != len(texts):
        message = f"the encoder {encoder.name!r} returned an array of shape {encoded.shape} for {len(texts)} texts"
        raise SourceError(message, code="encoder-failed")
    return pack_vectors(encoded)


def pack_vectors(vectors: Vectors) -> list[bytes]:
    """Vectors of length one as bytes: the largest number of each as a float, then each number as one byte of it."""
    rows = np.asarray(vectors, np.float32)
    scales = np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo(np.float32).tiny).astype("<f4") / _LARGEST
    numbers = np.rint(rows / scales).astype(np.int8)
    return [scale.tobytes() + row.tobytes() for scale, row in zip(scales, numbers, strict=True)]


class VectorTable:
    """The vectors of the rows of some indexes."""

    def __init__(self, packed: Sequence[tuple[RowPlace, bytes]]) -> None:
        """``packed``: the vector of each row, as ``pack_vectors`` returns it, all of one length."""
        self._places = [place for place, _ in packed]
        self._positions = {place: position for position, place in enumerate(self._places)}
        width = len(packed[0][1]) if packed else _SCALE_BYTES
        table = np.frombuffer(b"".join(vector for _, vector in packed), np.uint8).reshape(len(packed), width)
        self._scales = np.ascontiguousarray(table[:, :_SCALE_BYTES]).view("<f4").reshape(-1)
        self._numbers = table[:, _SCALE_BYTES:].view(np.int8)

    def find_nearest(self, request: Vectors, most: int, also: Iterable[RowPlace]) -> dict[RowPlace, float]:
        """Return the cosines of a request with the ``most`` rows that are nearest to it, and with the rows in ``also``.

        Raises ``SourceError`` when the vector of the request is longer or shorter than those of the rows.
        """
        if not self._places:
            return {}
        if request.shape != self._numbers.shape[1:]:
            message = (
                f"the vector of the request has {request.shape} numbers, those of skills {self._numbers.shape[1:]}"
            )
            raise SourceError(message, code="encoder-failed")
        cosines = self._multiply(request)
        nearest = np.argpartition(-cosines, most)[:most] if most < len(cosines) else np.arange(len(cosines))
        positions = list({*nearest.tolist(), *(self._positions[place] for place in also if place in self._positions)})
        rounded = np.round(cosines[positions].astype(np.float64), _COSINE_DIGITS).tolist()
        return dict(zip((self._places[position] for position in positions), rounded, strict=True))

    def _multiply(self, request: Vectors) -> Vectors:
        """Return the cosines of all rows with a request. All rows as floats would take four times the memory."""
        products = np.empty(len(self._numbers), np.float32)
        for start in range(0, len(products), _ROWS_PER_PRODUCT):
            part = slice(start, start + _ROWS_PER_PRODUCT)
            products[part] = self._numbers[part].astype(np.float32) @ request
        products *= self._scales
        return products

    def measure_likeness(self, places: Sequence[RowPlace]) -> list[float]:
        """For each of the rows, its cosine with the row before it that is nearest to it; 0 for a row without any."""
        known = [number for number, place in enumerate(places) if place in self._positions]
        positions = [self._positions[places[number]] for number in known]
        rows = self._numbers[positions].astype(np.float32) * self._scales[positions, None]
        nearest = np.triu(rows @ rows.T, 1).max(axis=0, initial=0.0)
        likeness = [0.0] * len(places)
        for number, cosine in zip(known, nearest.tolist(), strict=True):
            likeness[number] = cosine
        return likeness
