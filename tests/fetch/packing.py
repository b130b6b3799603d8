"""Archives for tests, benign and odd: made with the standard library where that can, by hand where it refuses to."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import zipfile
import zlib

SKILL = b"---\nname: pdf\ndescription: Reads PDF files.\n---\nDo it.\n"
FILES = {"SKILL.md": SKILL, "scripts/run.py": b"print(1)\n", "references/a.md": b"text\n" * 40}


def zipped(
    files: dict[str, bytes], *, wrapper: str = "", method: int = zipfile.ZIP_DEFLATED, comment: bytes = b""
) -> bytes:
    """A zip as the standard library writes it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(wrapper + name, content)
        archive.comment = comment
    return out.getvalue()


class _NoSeeking(io.BytesIO):
    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation


def streamed_zip(files: dict[str, bytes]) -> bytes:
    """A zip as a program writes it that cannot go back, so that sizes follow the content."""
    out = _NoSeeking()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


class Zip:
    """A zip made by hand, entry by entry; every field can lie."""

    def __init__(self) -> None:
        self._local = bytearray()
        self._central = bytearray()
        self.count = 0

    def add(
        self,
        name: bytes,
        content: bytes = b"",
        *,
        mode: int = 0,
        flags: int = 0,
        method: int = 8,
        size: int | None = None,
        crc: int | None = None,
        central_name: bytes | None = None,
        extra: bytes = b"",
        at: int | None = None,
        packed: bytes | None = None,
    ) -> Zip:
        data = (content if method != 8 else deflated(content)) if packed is None else packed
        crc = zlib.crc32(content) if crc is None else crc
        size = len(content) if size is None else size
        central_name = name if central_name is None else central_name
        offset = len(self._local) if at is None else at
        sums = struct.pack("<3L", crc, len(data), size)
        head = struct.pack("<5H", 20, flags, method, 0, 0x21) + sums
        if at is None:
            self._local += b"PK\x03\x04" + head + struct.pack("<2H", len(name), len(extra)) + name + extra + data
        self._central += b"PK\x01\x02" + struct.pack("<H", 0x0314) + head
        self._central += struct.pack("<5H2L", len(central_name), len(extra), 0, 0, 0, mode << 16, offset)
        self._central += central_name + extra
        self.count += 1
        return self

    def gap(self, data: bytes) -> Zip:
        """Bytes that belong to no entry."""
        self._local += data
        return self

    def bytes(self, *, count: int | None = None, before: bytes = b"", after: bytes = b"") -> bytes:
        count = self.count if count is None else count
        start = len(self._local)
        end = struct.pack("<4H2LH", 0, 0, count, count, len(self._central), start, 0)
        return before + bytes(self._local) + bytes(self._central) + b"PK\x05\x06" + end + after


def deflated(content: bytes) -> bytes:
    """Compressed as an entry of a zip is."""
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    return engine.compress(content) + engine.flush()


def good_zip() -> Zip:
    """One that is accepted as it stands."""
    return Zip().add(b"SKILL.md", SKILL)


def tarred(files: dict[str, bytes], *, packed: bool = True, style: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar as the standard library writes it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=style) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(out.getvalue()) if packed else out.getvalue()


def tar_with(*members: tarfile.TarInfo, content: bytes = b"") -> bytes:
    """A good skill and these members after it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        own = tarfile.TarInfo("SKILL.md")
        own.size = len(SKILL)
        archive.addfile(own, io.BytesIO(SKILL))
        for member in members:
            archive.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return gzip.compress(out.getvalue())


def member(name: str, **fields: object) -> tarfile.TarInfo:
    """A member of a tar with these fields."""
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def tar_header(name: bytes, size: int = 0, kind: bytes = b"0", *, mode: int = 0o644, target: bytes = b"") -> bytes:
    """One header with a right checksum, whatever it says."""
    fields = [name.ljust(100, b"\0"), b"%07o\0" % mode, b"0000000\0", b"0000000\0", b"%011o\0" % size]
    fields += [b"00000000000\0", b" " * 8, kind, target.ljust(100, b"\0"), b"ustar\x0000"]
    block = b"".join(fields).ljust(512, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def tar_block(data: bytes) -> bytes:
    """Data filled up to whole blocks."""
    return data.ljust(-(-len(data) // 512) * 512, b"\0")


def pax_record(key: bytes, value: bytes) -> bytes:
    """``LENGTH KEY=VALUE LF``."""
    body = b" %s=%s\n" % (key, value)
    length = len(body) + 1
    while len(b"%d" % length) + len(body) != length:
        length = len(b"%d" % length) + len(body)
    return b"%d%s" % (length, body)


OWN_TAR = tar_header(b"SKILL.md", len(SKILL)) + tar_block(SKILL)
TAR_END = b"\0" * 1024
SYMLINK = stat.S_IFLNK | 0o777
