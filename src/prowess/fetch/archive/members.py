"""What the readers of zip and tar share: a member, the refusal, inflating in pieces, counting unpacked bytes."""

from __future__ import annotations

import importlib
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PIECE_BYTES = 1 << 16
_INPUT_BYTES = 1 << 14  # zlib copies all input that it has not used yet, so it gets little at once
RAW_WBITS, GZIP_WBITS = -zlib.MAX_WBITS, zlib.MAX_WBITS | 16
SPECIAL_BITS = 0o7000  # setuid, setgid and sticky


class ArchiveMember(NamedTuple):
    """A file or a folder under the name that the archive gives it; nobody has checked the name yet."""

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
    """Inflate one compressed stream in pieces of at most 64 KiB, so that no bomb is ever in memory as a whole.

    Raises ``BadStreamError`` when the stream is damaged, or does not end where the bytes do.
    """
    engine = zlib.decompressobj(wbits)
    parts = (chunk[start : start + _INPUT_BYTES] for chunk in chunks for start in range(0, len(chunk), _INPUT_BYTES))
    try:
        for part in parts:
            if engine.eof:
                raise BadStreamError("goes on after its end")
            pending, piece = part, b""
            # A full piece may have more behind it, although all input is used.
            while pending or len(piece) == PIECE_BYTES:
                piece = engine.decompress(pending, PIECE_BYTES)
                if piece:
                    yield piece
                pending = engine.unconsumed_tail
            if engine.unused_data:
                raise BadStreamError("goes on after its end")
    except zlib.error:
        raise BadStreamError("is damaged") from None
    if not engine.eof:
        raise BadStreamError("ends too soon")


def unpack_zstd(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Unpack one zstd stream in pieces of at most 64 KiB; raises ``BadStreamError`` as ``inflate`` does.

    Raises ``MissingPackageError`` where neither Python (3.14 and later) nor a package unpacks zstd.
    """
    zstd = load_zstd()
    engine = zstd.ZstdDecompressor()
    try:
        for chunk in chunks:
            if engine.eof:
                raise BadStreamError("goes on after its end")
            yield engine.decompress(chunk, PIECE_BYTES)
            while not (engine.needs_input or engine.eof):
                yield engine.decompress(b"", PIECE_BYTES)
            if engine.unused_data:
                raise BadStreamError("goes on after its end")
    except zstd.ZstdError:
        raise BadStreamError("is damaged") from None
    if not engine.eof:
        raise BadStreamError("ends too soon")


def load_zstd() -> Any:
    """Return the module that unpacks zstd; raises ``MissingPackageError`` where there is none."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return importlib.import_module(name)
    raise MissingPackageError("an archive is compressed with zstd, which needs a package: pip install backports.zstd")


class UnpackMeter:
    """Counts the bytes that really come out of an archive, and refuses more than the limits.

    The sizes that an archive announces are claims. Only what was counted is believed.
    """

    def __init__(self, packed: int, max_bytes: int, max_ratio: int) -> None:
        self._max_bytes = max_bytes
        self._max_ratio = max_ratio
        # A small archive may hold one letter a million times: the ratio counts from one MiB on.
        self._max_ratio_bytes = max(packed * max_ratio, 1 << 20)
        self._unpacked = 0

    def count(self, size: int) -> None:
        """Count ``size`` more bytes; raises ``RefusedArchiveError`` when they are too many."""
        self._unpacked += size
        if self._unpacked > self._max_bytes:
            why = f"unpacks to more than max_unpacked_bytes ({self._max_bytes})"
            raise RefusedArchiveError(why, "archive-too-large")
        if self._unpacked > self._max_ratio_bytes:
            why = f"unpacks to more than max_archive_ratio ({self._max_ratio}) times its size"
            raise RefusedArchiveError(why, "archive-too-large")

    def check_claim(self, size: int) -> None:
        """Raise ``RefusedArchiveError`` when ``size`` more bytes, which the archive announces, would be too many."""
        if self._unpacked + size > min(self._max_bytes, self._max_ratio_bytes):
            self.count(size)
