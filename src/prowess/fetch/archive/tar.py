"""Reads the members of a tar archive, compressed with gzip, zstd or not at all, or refuses it; and writes a tar.

The archive is read header by header, so nothing is in memory but what was accepted. Only files and folders are
accepted. The extended records that some programs write before a member are understood, since they hold long names. A
record whose size differs from that of the header is refused: readers that believe one or the other see different files.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from prowess.fetch.archive.members import (
    GZIP_WBITS,
    PIECE_BYTES,
    SPECIAL_BITS,
    ArchiveMember,
    BadStreamError,
    RefusedArchiveError,
    UnpackMeter,
    inflate,
    unpack_zstd,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prowess.files.write import NewFile
    from prowess.limits import Limits

GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BLOCK = 512
_COMPRESSION_LEVEL = 9
_POSIX_MAGIC, _GNU_MAGIC = b"ustar\x0000", b"ustar  \x00"
_MAGIC_FIELD = slice(257, 265)
_MAX_RECORDS_BYTES = 1 << 16  # no name or attribute is near that; it bounds what is held before it is judged
_FILE, _FOLDER, _RECORDS, _COMMON_RECORDS, _LONG_NAME = b"0", b"5", b"x", b"g", b"L"
_REFUSED_KINDS = {
    b"1": "a link",
    b"2": "a link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a FIFO",
    b"S": "a sparse file",
}
_IGNORED_KEYS = ("mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment")
_IGNORED_PREFIXES = ("SCHILY.", "LIBARCHIVE.")


def is_tar(data: bytes) -> bool:
    """Return whether the bytes begin like a tar archive without compression."""
    return data[_MAGIC_FIELD] in {_POSIX_MAGIC, _GNU_MAGIC}


def read_tar(data: bytes, limits: Limits) -> Iterator[ArchiveMember]:
    """Yield every member in order; raises ``RefusedArchiveError`` at the first thing that is not accepted."""
    meter = UnpackMeter(len(data), limits.max_unpacked_bytes, limits.max_archive_ratio)
    pieces: Iterable[bytes] = (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))
    if data.startswith(GZIP_MAGIC):
        pieces = inflate(pieces, GZIP_WBITS)
    elif data.startswith(ZSTD_MAGIC):
        pieces = filter(None, unpack_zstd(pieces))  # a piece that needs more input is empty, and ends nothing
    stream = _TarStream(pieces, meter)
    count = 0
    records: dict[str, str] = {}
    while (header := _read_header(stream)) is not None:
        count += 1
        if count > 2 * limits.max_archive_entries:  # a long name takes an entry of its own before its member
            why = f"has more than max_archive_entries ({limits.max_archive_entries}) entries"
            raise RefusedArchiveError(why, "archive-too-large")
        kind, size = header[156:157], _parse_number(header[124:136], "size")
        if kind in {_RECORDS, _COMMON_RECORDS, _LONG_NAME}:
            if size > _MAX_RECORDS_BYTES:
                raise RefusedArchiveError("has names and attributes that are too long")
            new_records = _parse_records(kind, stream.take_blocks(size))
            if new_records.keys() & records.keys():
                raise RefusedArchiveError("has a member with two names or sizes")
            records |= new_records
            continue
        yield _read_member(header, size, records, stream)
        records = {}
    if records:
        raise RefusedArchiveError("has a name without a member")
    stream.check_end()


class _TarStream:
    """The unpacked bytes of an archive, taken in order and counted as they come."""

    def __init__(self, pieces: Iterable[bytes], meter: UnpackMeter) -> None:
        self._pieces = iter(pieces)
        self._meter = meter
        self._rest = b""

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes; raises ``RefusedArchiveError`` when there are fewer."""
        self._meter.check_claim(size - len(self._rest))
        taken = BytesIO()  # gives its bytes without copying them
        while taken.tell() < size:
            if not self._rest:
                self._rest = self._next_piece()
            if not self._rest:
                raise RefusedArchiveError("is cut short")
            left = size - taken.tell()
            taken.write(self._rest[:left])
            self._rest = self._rest[left:]
        return taken.getvalue()

    def take_blocks(self, size: int) -> bytes:
        """Return the next ``size`` bytes, and skip what fills up their last block."""
        taken = self.take(size)
        self.take(-size % _BLOCK)
        return taken

    def _next_piece(self) -> bytes:
        try:
            piece = next(self._pieces, b"")
        except BadStreamError as error:
            raise RefusedArchiveError(f"has a compressed stream that {error}") from None
        self._meter.count(len(piece))
        return piece

    def check_end(self) -> None:
        """Raise ``RefusedArchiveError`` unless only zeros are left.

        Another reader might find members in what follows the end.
        """
        while True:
            if self._rest.strip(b"\0"):
                raise RefusedArchiveError("goes on after its end")
            self._rest = self._next_piece()
            if not self._rest:
                return


def _read_header(stream: _TarStream) -> bytes | None:
    """Return the next header, or ``None`` at the two blocks of zeros that end an archive."""
    block = stream.take(_BLOCK)
    if not block.strip(b"\0"):
        if stream.take(_BLOCK).strip(b"\0"):
            raise RefusedArchiveError("goes on after its end")
        return None
    if block[_MAGIC_FIELD] not in {_POSIX_MAGIC, _GNU_MAGIC}:
        raise RefusedArchiveError("has a header of an unknown kind")
    # The checksum is the sum of all bytes, with eight spaces in place of its own field.
    if sum(block) - sum(block[148:156]) + 8 * 0x20 != _parse_number(block[148:156], "checksum"):
        raise RefusedArchiveError("has a damaged header")
    return block


def _parse_number(field: bytes, what: str) -> int:
    digits = field.strip(b" \0")
    if not digits or not all(0x30 <= digit <= 0x37 for digit in digits):  # noqa: PLR2004 - the octal digits
        raise RefusedArchiveError(f"has a {what} that is not an octal number")
    return int(digits, 8)


def _parse_records(kind: bytes, data: bytes) -> dict[str, str]:
    """Return the name and the size of the next member, as far as extended records hold them.

    Raises ``RefusedArchiveError`` for records that may change what a member is, and for common records (those for all
    members) with a name or a size.
    """
    if kind == _LONG_NAME:
        return {"path": _decode_text(data.rstrip(b"\0"))}
    records = dict(_split_records(data))
    for key in records:
        if key not in {*_IGNORED_KEYS, "path", "size"} and not key.startswith(_IGNORED_PREFIXES):
            raise RefusedArchiveError(f"has an attribute that is not accepted: {key[:40]!r}")
    used = {key: value for key, value in records.items() if key in {"path", "size"}}
    if used and kind == _COMMON_RECORDS:
        raise RefusedArchiveError("gives all its members one name or size")
    return used


def _split_records(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield key and value of each record, which is written ``LENGTH KEY=VALUE LF``."""
    keys: set[bytes] = set()
    while data:
        digits = data[:6].partition(b" ")[0]
        length = int(digits) if digits.isdigit() else 0
        record, data = data[:length], data[length:]
        key, equals, value = record[len(digits) + 1 :].partition(b"=")
        if not equals or not record.endswith(b"\n") or len(record) != length or key in keys:
            raise RefusedArchiveError("has damaged attributes")
        keys.add(key)
        if key.startswith((b"SCHILY.", b"LIBARCHIVE.")):  # their values may be any bytes, and are not used
            value = b"\n"
        yield _decode_text(key), _decode_text(value[:-1])


def _read_member(header: bytes, size: int, records: dict[str, str], stream: _TarStream) -> ArchiveMember:
    name = records["path"] if "path" in records else _member_name(header)
    kind, mode = header[156:157], _parse_number(header[100:108], "mode")
    if kind == b"\0":  # how the oldest tar programs mark a file
        kind = _FILE
    if kind not in {_FILE, _FOLDER}:
        raise _make_refusal(name, f"is {_REFUSED_KINDS.get(kind, 'no regular file')}")
    if "size" in records and records["size"] != str(size):
        raise _make_refusal(name, "has two sizes")
    # A reader that goes by this field would make a link.
    if header[157:257].strip(b"\0"):
        raise _make_refusal(name, "names a target as a link does")
    if kind == _FOLDER:
        if size:
            raise _make_refusal(name, "is a folder with content")
        return ArchiveMember(name, folder=True)
    if name.endswith("/"):
        raise _make_refusal(name, "is a file with the name of a folder")
    if mode & SPECIAL_BITS:
        raise _make_refusal(name, "has a setuid, setgid or sticky bit")
    return ArchiveMember(name, stream.take_blocks(size), bool(mode & 0o100))


def _member_name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    # Only POSIX archives have a prefix there; GNU writes times into that place.
    prefix = header[345:500].partition(b"\0")[0] if header[_MAGIC_FIELD] == _POSIX_MAGIC else b""
    return _decode_text(prefix + b"/" + name if prefix else name)


def _decode_text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedArchiveError(f"has a name that is not UTF-8: {raw[:80]!r}") from None


def _make_refusal(name: str, why: str) -> RefusedArchiveError:
    return RefusedArchiveError(f"holds {name[:80]!r}, which {why}")


def make_tar(files: Sequence[NewFile], folder: str = "") -> bytes:
    """Return files as a tar: equal content gives equal bytes, without times and owners, in the order of ``files``.

    With ``folder`` everything is in that folder, and each folder has an entry of its own: some programs that unpack
    create no others.
    """
    import tarfile

    made, known = BytesIO(), {""}
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file in files:
            path = f"{folder}/{file.path}" if folder else file.path
            parts = path.split("/")[:-1] if folder else []
            for parent in ("/".join(parts[: depth + 1]) for depth in range(len(parts))):
                if parent not in known:
                    known.add(parent)
                    entry = tarfile.TarInfo(parent)
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    archive.addfile(entry)
            info = tarfile.TarInfo(path)
            info.size = len(file.content)
            info.mode = 0o755 if file.executable else 0o644
            archive.addfile(info, BytesIO(file.content))
    return made.getvalue()


def compress_gzip(data: bytes) -> bytes:
    """Return bytes compressed with gzip, without what differs between moments and versions of Python."""
    import gzip

    packed = gzip.compress(data, _COMPRESSION_LEVEL, mtime=0)
    return packed[:9] + b"\xff" + packed[10:]  # the operating system, which older versions of Python write there
