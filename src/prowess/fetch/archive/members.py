"""One member of an archive as it comes out of it, the error that refuses them all, and bytes that inflate in pieces."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PIECE_BYTES = 1 << 16
_INPUT_BYTES = 1 << 14  # what zlib does not take at once it copies, so it gets little at once
RAW_WBITS, GZIP_WBITS = -zlib.MAX_WBITS, zlib.MAX_WBITS | 16
SPECIAL_BITS = 0o7000


class ArchiveMember(NamedTuple):
    """A file or a folder under the name that the archive gives it, not judged yet."""

    name: str
    content: bytes = b""
    executable: bool = False
    folder: bool = False


class RefusedArchiveError(ValueError):
    """Why an archive is not accepted."""

    def __init__(self, why: str, code: str = "bad-archive") -> None:
        super().__init__(why)
        self.why = why
        self.code = code


class BadStreamError(ValueError):
    """Compressed bytes that are damaged, end too soon, or go on after their end."""


def inflate(chunks: Iterable[bytes], wbits: int) -> Iterator[bytes]:
    """What one compressed stream holds, in pieces of at most 64 KiB; it must end where the bytes do."""
    engine = zlib.decompressobj(wbits)
    for chunk in chunks:
        for at in range(0, len(chunk), _INPUT_BYTES):
            if engine.eof:
                raise BadStreamError("goes on after its end")
            yield from _inflate_pieces(engine, chunk[at : at + _INPUT_BYTES])
    if not engine.eof:
        raise BadStreamError("ends too soon")


def _inflate_pieces(engine: zlib._Decompress, fed: bytes) -> Iterator[bytes]:
    try:
        while True:
            piece = engine.decompress(fed, PIECE_BYTES)
            if piece:
                yield piece
            fed = engine.unconsumed_tail
            if not fed and len(piece) < PIECE_BYTES:
                break
    except zlib.error:
        raise BadStreamError("is damaged") from None
    if engine.unused_data:
        raise BadStreamError("goes on after its end")


class UnpackMeter:
    """Counts what really comes out, and refuses more than the bounds."""

    def __init__(self, packed: int, most: int, ratio: int) -> None:
        self._left = most
        self._most = most
        self._free = max(packed * ratio, 1 << 20)
        self._ratio = ratio
        self._out = 0

    def count(self, size: int) -> None:
        """Take note of ``size`` more bytes."""
        self._out += size
        if self._out > self._most:
            raise RefusedArchiveError(f"unpacks to more than max_unpacked_bytes ({self._most})", "archive-too-large")
        if self._out > self._free:
            why = f"unpacks to more than max_archive_ratio ({self._ratio}) times its size"
            raise RefusedArchiveError(why, "archive-too-large")

    def check_announced(self, size: int) -> None:
        """Refuse at once what would be too much if it were true."""
        if self._out + size > min(self._most, self._free):
            self.count(size)
