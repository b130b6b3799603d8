"""Reads the members of a zip archive, or refuses the archive.

Two readers of one zip can see different files: one goes by the directory at its end, another by the header before each
file. So a scanner could see harmless files where an installer finds others. Here directory and headers must agree,
entries must follow each other without gaps from the first byte to the directory, and nothing may lie before, between or
after them.
"""

from __future__ import annotations

import stat
import zlib
from io import BytesIO
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from prowess.fetch.archive.members import (
    RAW_WBITS,
    SPECIAL_BITS,
    ArchiveMember,
    BadStreamError,
    RefusedArchiveError,
    UnpackMeter,
    inflate,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.limits import Limits

ZIP_MAGIC = b"PK\x03\x04"
_END_MAGIC, _CENTRAL_MAGIC, _SIZES_MAGIC = b"PK\x05\x06", b"PK\x01\x02", b"PK\x07\x08"
_END_RECORD = Struct("<4s4H2LH")
_CENTRAL_HEADER = Struct("<4s6H3L5H2L")
_LOCAL_HEADER = Struct("<4s5H3L2H")
_SIZES_RECORD = Struct("<3L")
_EXTRA_HEADER = Struct("<2H")
_MAX_COMMENT_BYTES = 0xFFFF  # its length has two bytes: the end record is no further from the end
_ZIP64_MARK = 0xFFFFFFFF

_STORED, _DEFLATED = 0, 8
_SIZES_FOLLOW, _UTF8, _IGNORED_FLAGS = 0x0008, 0x0800, 0x0006
_KNOWN_FLAGS = _SIZES_FOLLOW | _UTF8 | _IGNORED_FLAGS
_EMPTY_DEFLATED = 2  # how many bytes nothing takes when it is deflated
_REFUSED_EXTRAS = {
    0x0001: "is a zip64 entry",
    0x000D: "carries the attributes of a link or device",
    0x756E: "carries the attributes of a link or device",
    0x7075: "has a second name",
    0x9901: "is encrypted",
}


class _ZipEntry(NamedTuple):
    """An entry of the directory at the end of the archive."""

    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed_size: int
    size: int
    mode: int
    offset: int

    @property
    def name(self) -> str:
        # A name that is neither ASCII nor marked as UTF-8 is refused, since programs disagree on it.
        try:
            return self.raw_name.decode("utf-8" if self.flags & _UTF8 else "ascii")
        except UnicodeDecodeError:
            raise RefusedArchiveError(f"has a name that is not UTF-8: {self.raw_name[:80]!r}") from None

    @property
    def is_folder(self) -> bool:
        return self.raw_name.endswith(b"/")


def read_zip(data: bytes, limits: Limits) -> Iterator[ArchiveMember]:
    """Yield every member in the order of the file; raises ``RefusedArchiveError`` for anything that is not accepted."""
    end, directory, count = _find_directory(data)
    if count > limits.max_archive_entries:
        why = f"has {count} entries; at most max_archive_entries ({limits.max_archive_entries}) are accepted"
        raise RefusedArchiveError(why, "archive-too-large")
    # In the order of the file: each must begin where the one before ends.
    entries = sorted(_read_directory(data, directory, end, count), key=lambda entry: entry.offset)
    meter = UnpackMeter(len(data), limits.max_unpacked_bytes, limits.max_archive_ratio)
    meter.check_claim(sum(entry.size for entry in entries))
    offset = 0
    for entry in entries:
        if entry.offset != offset:
            raise RefusedArchiveError("has entries that overlap, or bytes that belong to none")
        member, offset = _read_member(data, entry, meter)
        yield member
    if offset != directory:
        raise RefusedArchiveError("has entries that overlap, or bytes that belong to none")


def _find_directory(data: bytes) -> tuple[int, int, int]:
    """Return the offset of the end record, the offset of the directory, and the number of its entries."""
    # A comment may hold what looks like an end record. Only a record whose comment ends with the file counts, and a
    # second one would be a second directory.
    ends = [
        offset
        for offset in _find_end_records(data)
        if offset + _END_RECORD.size + _END_RECORD.unpack_from(data, offset)[7] == len(data)
    ]
    if len(ends) != 1:
        raise RefusedArchiveError("has no single end record" if ends else "is cut short")
    _, disk, first, here, count, size, start, _ = _END_RECORD.unpack_from(data, ends[0])
    if disk or first or here != count:
        raise RefusedArchiveError("has several parts")
    if start + size != ends[0]:
        raise RefusedArchiveError("has bytes before its entries or after its directory")
    return ends[0], start, count


def _find_end_records(data: bytes) -> Iterator[int]:
    offset = data.find(_END_MAGIC, max(len(data) - _END_RECORD.size - _MAX_COMMENT_BYTES, 0))
    while 0 <= offset <= len(data) - _END_RECORD.size:
        yield offset
        offset = data.find(_END_MAGIC, offset + 1)


def _read_directory(data: bytes, offset: int, end: int, count: int) -> Iterator[_ZipEntry]:
    for _ in range(count):
        if offset + _CENTRAL_HEADER.size > end or not data.startswith(_CENTRAL_MAGIC, offset):
            raise RefusedArchiveError("has a directory that does not hold what it says")
        fields = _CENTRAL_HEADER.unpack_from(data, offset)
        flags, method, crc, packed, size = fields[3], fields[4], fields[7], fields[8], fields[9]
        name_length, extra_length, comment_length, disk = fields[10:14]
        attributes, start = fields[15], fields[16]
        names = offset + _CENTRAL_HEADER.size
        extras = names + name_length
        offset = extras + extra_length + comment_length
        if offset > end:
            raise RefusedArchiveError("has a directory that does not hold what it says")
        entry = _ZipEntry(data[names:extras], flags, method, crc, packed, size, attributes >> 16, start)
        _check_entry(entry, disk)
        _check_extras(entry, data[extras : extras + extra_length])
        yield entry
    if offset != end:
        raise RefusedArchiveError("has a directory that holds more than it says")


def _check_entry(entry: _ZipEntry, disk: int) -> None:
    if entry.flags & ~_KNOWN_FLAGS:
        raise _make_refusal(entry, "is encrypted" if entry.flags & 1 else "uses a feature that is not known")
    if entry.method not in {_STORED, _DEFLATED}:
        raise _make_refusal(entry, f"is compressed in a way that is not known ({entry.method})")
    if disk or _ZIP64_MARK in {entry.packed_size, entry.size, entry.offset}:
        raise _make_refusal(entry, "is a zip64 entry or is in another part")
    kind = stat.S_IFMT(entry.mode)  # 0 where the archiver knows no Unix modes
    if kind not in {0, stat.S_IFDIR if entry.is_folder else stat.S_IFREG}:
        raise _make_refusal(entry, "is not a regular file")
    if entry.mode & SPECIAL_BITS and not entry.is_folder:
        raise _make_refusal(entry, "has a setuid, setgid or sticky bit")
    if entry.is_folder and (entry.size or entry.packed_size > _EMPTY_DEFLATED):
        raise _make_refusal(entry, "is a folder with content")
    if entry.method == _STORED and entry.size != entry.packed_size:
        raise _make_refusal(entry, "has two sizes")


def _check_extras(entry: _ZipEntry, extra: bytes) -> None:
    offset = 0
    while offset < len(extra):
        if offset + _EXTRA_HEADER.size > len(extra):
            raise _make_refusal(entry, "has damaged extra fields")
        kind, length = _EXTRA_HEADER.unpack_from(extra, offset)
        offset += _EXTRA_HEADER.size + length
        if offset > len(extra):
            raise _make_refusal(entry, "has damaged extra fields")
        if kind in _REFUSED_EXTRAS:
            raise _make_refusal(entry, _REFUSED_EXTRAS[kind])


def _read_member(data: bytes, entry: _ZipEntry, meter: UnpackMeter) -> tuple[ArchiveMember, int]:
    """Return the member behind its own header, and the offset at which the next one must begin."""
    begin = _skip_header(data, entry)
    end = begin + entry.packed_size
    if end > len(data):
        raise _make_refusal(entry, "reaches beyond the archive")
    content = _read_content(data[begin:end], entry, meter)
    executable = bool(entry.mode & stat.S_IXUSR) and not entry.is_folder
    return ArchiveMember(entry.name, content, executable, entry.is_folder), _skip_sizes(data, entry, end)


def _skip_header(data: bytes, entry: _ZipEntry) -> int:
    """Return the offset behind an entry's header; raises ``RefusedArchiveError`` unless it agrees with the entry."""
    if entry.offset + _LOCAL_HEADER.size > len(data) or not data.startswith(ZIP_MAGIC, entry.offset):
        raise _make_refusal(entry, "has no header of its own")
    fields: tuple[int, ...] = _LOCAL_HEADER.unpack_from(data, entry.offset)[1:]
    flags, method, crc, packed, size, name_length, extra_length = (*fields[1:3], *fields[5:])
    names = entry.offset + _LOCAL_HEADER.size
    extras = names + name_length
    begin = extras + extra_length
    is_equal = (crc, packed, size) == (entry.crc, entry.packed_size, entry.size)
    # An archiver that writes to a pipe does not know the sizes yet: zeros here, the sizes behind the content.
    is_later = entry.flags & _SIZES_FOLLOW and not any((crc, packed, size))
    if (flags, method, data[names:extras]) != (entry.flags, entry.method, entry.raw_name) or not (is_equal or is_later):
        raise _make_refusal(entry, "is one thing in its header and another in the directory")
    _check_extras(entry, data[extras:begin])
    return begin


def _read_content(packed: bytes, entry: _ZipEntry, meter: UnpackMeter) -> bytes:
    if entry.method == _STORED:
        meter.count(len(packed))
        content = packed
    else:
        content = _inflate_content(packed, entry, meter)
    if zlib.crc32(content) != entry.crc:
        raise _make_refusal(entry, "is damaged")
    return content


def _inflate_content(packed: bytes, entry: _ZipEntry, meter: UnpackMeter) -> bytes:
    content = BytesIO()  # gives its bytes without copying them
    try:
        for piece in inflate([packed], RAW_WBITS):
            meter.count(len(piece))
            content.write(piece)
            if content.tell() > entry.size:
                raise _make_refusal(entry, f"is larger than the {entry.size} bytes that it claims")
    except BadStreamError as error:
        raise _make_refusal(entry, str(error)) from None
    if content.tell() != entry.size:
        raise _make_refusal(entry, f"has {content.tell()} bytes and claims {entry.size}")
    return content.getvalue()


def _skip_sizes(data: bytes, entry: _ZipEntry, offset: int) -> int:
    """Return the offset at which an entry ends, behind the sizes that may follow its content."""
    if not entry.flags & _SIZES_FOLLOW:
        return offset
    expected = _SIZES_RECORD.pack(entry.crc, entry.packed_size, entry.size)
    # The format leaves it open whether a magic number comes first.
    for sizes in (_SIZES_MAGIC + expected, expected):
        if data.startswith(sizes, offset):
            return offset + len(sizes)
    raise _make_refusal(entry, "has other sizes after it than in the directory")


def _make_refusal(entry: _ZipEntry, why: str) -> RefusedArchiveError:
    shown = entry.raw_name[:80].decode("ascii", "backslashreplace")
    return RefusedArchiveError(f"holds {shown!r}, which {why}")
