"""Archives that write elsewhere, hold special files, or are far larger than they look."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zlib
from typing import TYPE_CHECKING

import pytest

from prowess.fetch.archive.unpack import unpack
from tests.fetch.packing import (
    OWN_TAR,
    SKILL,
    SYMLINK,
    TAR_END,
    Zip,
    deflated,
    good_zip,
    member,
    pax_record,
    tar_block,
    tar_header,
    tar_with,
    zipped,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from tests.hostile.conftest import Children, Remote
    from tests.hostile.invariants import Library
    from tests.web_sites import Site

MIB = 1 << 20

ZIPS: dict[str, Callable[[], Zip]] = {
    **{
        name: lambda name=name: good_zip().add(name.encode(), b"pwned")  # type: ignore[misc]  # bound as it is made
        for name in ("../x", "/x", "C:\\x", "a/../../x", "\\..\\x", "a\0b", "")
    },
    "a name twice": lambda: good_zip().add(b"a.md", b"1").add(b"a.md", b"2"),
    "SKILL.md and skill.md": lambda: good_zip().add(b"skill.md", SKILL),
    "a link": lambda: good_zip().add(b"a.md", b"/etc/passwd", mode=SYMLINK),
    "a device": lambda: good_zip().add(b"a.md", mode=stat.S_IFBLK | 0o600),
    "a folder with data": lambda: good_zip().add(b"a/", b"pwned"),
}


@pytest.mark.parametrize("kind", ZIPS)
def test_a_zip_that_would_write_elsewhere_is_refused_as_a_whole(
    library: Library, site: Site, remote: Remote, invariants: ModuleType, kind: str
) -> None:
    """Case 90: unsafe, double and special entries refuse the whole archive, and nothing is written."""
    data = ZIPS[kind]().bytes()
    library.assert_refused(lambda: unpack(data), "bad-archive")
    site.index(site.entry("evil", data, "archive"))
    catalog = remote(site.url)
    error = library.assert_refused(lambda: catalog.load("evil"), "bad-archive")
    assert error.path == catalog["evil"].location
    library.assert_refused(catalog["evil"].files, "bad-archive")
    assert invariants.MARKER not in str(error)


def test_the_twin_writes_where_a_zip_says(library: Library, naive: ModuleType) -> None:
    """Twin of case 90: an entry with two dots lands outside."""
    (library.root / "into").mkdir()
    naive.unzip(good_zip().add(b"../../outside/secret.md", b"pwned").bytes(), library.root / "into")
    assert (library.outside / "secret.md").read_bytes() == b"pwned"


# -- bombs -------------------------------------------------------------------------------------------------------------


def bomb(mebibytes: int) -> bytes:
    """A raw compressed stream of so many mebibytes of zeros, made by repeating one of them."""
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    one = engine.compress(b"\0" * MIB) + engine.flush(zlib.Z_FULL_FLUSH)
    return one * mebibytes + b"\3\0"


def overlapping(count: int) -> bytes:
    """Many entries over the same bytes."""
    zeros = b"\0" * MIB
    once = deflated(zeros)
    made = good_zip().add(b"0", zeros)
    for number in range(1, count):
        made.add(str(number).encode(), packed=once, size=MIB, crc=zlib.crc32(zeros), at=0)
    return made.bytes()


BOMBS: dict[str, Callable[[], bytes]] = {
    "gibibytes that say so": lambda: good_zip().add(b"x", packed=bomb(4000), size=4000 * MIB, crc=0).bytes(),
    "gibibytes that claim to be nothing": lambda: good_zip().add(b"x", packed=bomb(4000), size=10, crc=0).bytes(),
    "gibibytes within the cap by their own word": lambda: (
        good_zip().add(b"x", packed=bomb(4000), size=60 * MIB).bytes()
    ),
    "entries over each other": lambda: overlapping(1000),
    "more entries than numbers": lambda: many(65_600),
    "an archive in an archive": lambda: zipped({"SKILL.md": SKILL, "inner.zip": zipped({"x": b"\0" * MIB})}),
    "a tar of gibibytes": lambda: gzip_bomb(4000),
}


def many(count: int) -> bytes:
    made = good_zip()
    for number in range(count):
        made.add(str(number).encode(), method=0)
    return made.bytes(count=min(made.count, 0xFFFF))


def gzip_bomb(mebibytes: int) -> bytes:
    """A tar with one file of so many mebibytes, packed."""
    head = gzip.compress(OWN_TAR + tar_header(b"x", mebibytes * MIB))
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    begin = engine.compress(OWN_TAR + tar_header(b"x", mebibytes * MIB)) + engine.flush(zlib.Z_FULL_FLUSH)
    return head[:10] + begin + bomb(mebibytes) + b"\0" * 8


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_refused_by_what_really_comes_out(
    library: Library, child: Children, tmp_path: Path, kind: str
) -> None:
    """Case 91: huge, lying, overlapping, too many and nested entries are all refused."""
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[kind]())
    outcome = child.answer(
        """
from pathlib import Path
from prowess.fetch.archive.unpack import unpack
data = Path(args[0]).read_bytes()
error = library.assert_refused(lambda: unpack(data), "archive-too-large", "bad-archive")
result = error.code
""",
        library,
        str(path),
        memory=192,
    )
    assert outcome.result in {"archive-too-large", "bad-archive"}
    most = 64 * MIB if "within the cap" in kind else 8 * MIB
    assert outcome.grown < most + 3 * path.stat().st_size, "what its word allows, and the archive itself"


def test_the_twin_unpacks_a_bomb_into_memory(library: Library, child: Children, tmp_path: Path) -> None:
    """Twin of case 91: it reads a whole entry at once."""
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS["gibibytes that say so"]())
    code = "from pathlib import Path\nnaive.unzip(Path(args[0]).read_bytes(), library.evil)"
    assert child(code, library, str(path), memory=512).raised == "MemoryError"


# -- tar ---------------------------------------------------------------------------------------------------------------


def smuggled() -> bytes:
    """A member that readers see differently, depending on which of two sizes they believe."""
    inner = tar_header(b"hidden.md", 5) + tar_block(b"pwned")
    records = pax_record(b"size", b"%d" % len(inner))
    begin = tar_header(b"records", len(records), b"x") + tar_block(records)
    return gzip.compress(OWN_TAR + begin + tar_header(b"x.bin", 0) + inner + TAR_END)


def through_a_link() -> bytes:
    """A link to a folder, then a file written through it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.addfile(member("a", type=tarfile.SYMTYPE, linkname="../../outside"))
        archive.addfile(member("a/secret.md", size=5), io.BytesIO(b"pwned"))
    return out.getvalue()


TARS: dict[str, Callable[[], bytes]] = {
    **{
        name: lambda name=name: gzip.compress(  # type: ignore[misc]  # bound as it is made
            OWN_TAR + tar_header(name.encode(), 5) + tar_block(b"pwned") + TAR_END
        )
        for name in ("../x", "/x", "a/../../x", "./././..", "a\\b")
    },
    "a hard link": lambda: tar_with(member("x", type=tarfile.LNKTYPE, linkname="/etc/passwd")),
    "a link and a file through it": through_a_link,
    "a device": lambda: tar_with(member("x", type=tarfile.CHRTYPE, devmajor=1, devminor=5)),
    "a FIFO": lambda: tar_with(member("x", type=tarfile.FIFOTYPE)),
    "a sparse file": lambda: gzip.compress(OWN_TAR + tar_header(b"x", 0, b"S") + TAR_END),
    "two sizes": smuggled,
    "setuid": lambda: tar_with(member("x", mode=0o4755)),
}


@pytest.mark.parametrize("kind", TARS)
def test_a_tar_that_would_write_elsewhere_is_refused_as_a_whole(
    library: Library, site: Site, remote: Remote, kind: str
) -> None:
    """Case 93: escapes, links, devices, FIFOs, sparse files, two sizes and special bits refuse the whole archive."""
    data = TARS[kind]()
    library.assert_refused(lambda: unpack(data), "bad-archive")
    site.index(site.entry("evil", data, "archive"))
    catalog = remote(site.url)
    library.assert_refused(lambda: catalog.load("evil"), "bad-archive")


def test_the_twin_writes_through_a_link(library: Library, naive: ModuleType) -> None:
    """Twin of case 93: the file lands behind the link."""
    (library.root / "into").mkdir()
    naive.untar(through_a_link(), library.root / "into")
    assert (library.outside / "secret.md").read_bytes() == b"pwned"
