"""Which archives are unpacked, under which paths, and which are refused as a whole."""

from __future__ import annotations

import gzip
import io
import random
import stat
import struct
import subprocess
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.archive.unpack import unpack
from tests.fetch.packing import (
    FILES,
    OWN_TAR,
    SKILL,
    SYMLINK,
    TAR_END,
    Zip,
    good_zip,
    member,
    pax_record,
    streamed_zip,
    tar_block,
    tar_header,
    tar_with,
    tarred,
    zipped,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def contents(data: bytes) -> dict[str, bytes]:
    return {file.path: file.content for file in unpack(data)}


def refused(data: bytes, code: str = "bad-archive", limits: prowess.Limits | None = None) -> str:
    with pytest.raises(prowess.SkillValidationError) as caught:
        unpack(data, name="the-archive", limits=limits or prowess.Limits())
    assert caught.value.code == code, caught.value
    assert caught.value.path == "the-archive"
    return caught.value.message


# -- what opens --------------------------------------------------------------------------------------------------------

OPENING: dict[str, Callable[[], bytes]] = {
    "zip": lambda: zipped(FILES),
    "zip of stored files": lambda: zipped(FILES, method=zipfile.ZIP_STORED),
    "zip with a comment": lambda: zipped(FILES, comment=b"0123abcd"),
    "zip written in one go": lambda: streamed_zip(FILES),
    "zip with a wrapper folder": lambda: zipped(FILES, wrapper="pdf/"),
    "zip with entries for folders": lambda: zipped({"scripts/": b"", "references/": b"", **FILES}),
    "zip with another system's leftovers": lambda: zipped({**FILES, "__MACOSX/._SKILL.md": b"\0\5"}, wrapper=""),
    "tar.gz": lambda: tarred(FILES),
    "tar": lambda: tarred(FILES, packed=False),
    "tar of the GNU kind": lambda: tarred(FILES, style=tarfile.GNU_FORMAT),
    "tar of the older POSIX kind": lambda: tarred(FILES, style=tarfile.USTAR_FORMAT),
    "tar of a working folder": lambda: tarred({f"./{name}": content for name, content in FILES.items()}),
    "tar with a wrapper folder": lambda: tarred({f"pdf-1.0/{name}": content for name, content in FILES.items()}),
}


@pytest.mark.parametrize("kind", OPENING)
def test_a_plain_archive_gives_its_files(kind: str) -> None:
    assert contents(OPENING[kind]()) == FILES


def test_files_come_in_byte_order_of_their_paths() -> None:
    names = [*FILES, "Z.md", "a.md", "é.md"]
    found = unpack(zipped(dict.fromkeys(names, b"x") | {"SKILL.md": SKILL}))
    assert [file.path for file in found] == sorted(names, key=str.encode)


@pytest.mark.parametrize("style", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_and_foreign_names_keep_their_text(style: int) -> None:
    long = f"references/{'ä' * 60}/{'b' * 90}.md"
    assert contents(tarred({"SKILL.md": SKILL, long: b"x"}, style=style))[long] == b"x"
    assert contents(zipped({"SKILL.md": SKILL, long: b"x"}))[long] == b"x"


def test_the_owners_right_to_execute_is_kept() -> None:
    script = good_zip().add(b"run.sh", b"x", mode=stat.S_IFREG | 0o755).bytes()
    assert [(file.path, file.executable) for file in unpack(script)] == [("SKILL.md", False), ("run.sh", True)]
    script = tar_with(member("run.sh", size=1, mode=0o755), content=b"x")
    assert [(file.path, file.executable) for file in unpack(script)] == [("SKILL.md", False), ("run.sh", True)]


def test_archives_made_by_git_and_tar_are_unpacked(tmp_path: Path) -> None:
    folder = tmp_path / "pdf"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "add", "."], check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "-C", str(folder), *who, "commit", "-qm", "x"], check=True)
    for style in ("zip", "tar.gz", "tar"):
        command = ["git", "-C", str(folder), "archive", f"--format={style}", "--prefix=pdf/", "HEAD"]
        assert contents(subprocess.run(command, check=True, capture_output=True).stdout) == FILES
    command = ["tar", "-C", str(folder), "--exclude=.git", "-czf", "-", "."]
    assert contents(subprocess.run(command, check=True, capture_output=True).stdout) == FILES


def test_an_empty_file_and_an_empty_folder_are_harmless() -> None:
    assert contents(zipped({"SKILL.md": SKILL, "empty.md": b"", "nothing/": b""})) == {
        "SKILL.md": SKILL,
        "empty.md": b"",
    }


# -- where SKILL.md lies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "files",
    [
        {"a.md": b"x"},
        {"pdf/SKILL.md": SKILL, "other/a.md": b"x"},
        {"pdf/SKILL.md": SKILL, "a.md": b"x"},
        {"a/pdf/SKILL.md": SKILL},
        {"skill.md": SKILL},
        {"pdf/skill.md": SKILL},
    ],
)
def test_an_archive_without_a_skill_on_top_or_in_one_folder_is_refused(files: dict[str, bytes]) -> None:
    assert "SKILL.md" in refused(zipped(files), "missing-skill-md")


def test_a_skill_on_top_stays_with_all_its_folders() -> None:
    files = {"SKILL.md": SKILL, "inner/SKILL.md": SKILL}
    assert contents(zipped(files)) == files


# -- names -------------------------------------------------------------------------------------------------------------

ODD_NAMES = [
    *(
        "../x",
        "/x",
        "a/../../x",
        "C:\\x",
        "C:x",
        "\\..\\x",
        "a\\b",
        "a\nb",
        "NUL",
        "con.md",
        "x.",
        "x ",
        "~/x",
        "..",
        "a/..",
    ),
    *("SKILL.MD", "skill.md", "./SKILL.md", "SKILL.md/x"),
    *("inner.zip", "a/b.tar.gz", "x.skill", "X.7Z"),
    "/".join("a" * 17),
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_that_is_unsafe_on_any_platform_refuses_the_whole_archive(name: str) -> None:
    refused(Zip().add(b"SKILL.md", SKILL).add(name.encode(), b"x").bytes())
    refused(gzip.compress(OWN_TAR + tar_header(name.encode(), 1) + tar_block(b"x") + TAR_END))


@pytest.mark.parametrize("name", [b"", b"a\0b", b"\xff.md"])
def test_a_name_that_is_not_text_refuses_the_whole_archive(name: bytes) -> None:
    refused(good_zip().add(name, b"x", flags=0x800).bytes())


def test_a_name_in_an_unknown_encoding_or_a_second_name_refuses_the_archive() -> None:
    refused(good_zip().add("é.md".encode("cp437"), b"x").bytes())
    refused(good_zip().add(b"a.md", b"x", extra=struct.pack("<2H5s", 0x7075, 5, b"\1abcd")).bytes())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a.md", "a.md"),
        ("a.md", "A.md"),
        ("straße", "STRASSE"),
        ("caf\u00e9", "cafe\u0301"),
        ("a/x", "A/y"),
        ("a", "a/x"),
    ],
)
def test_names_that_are_one_on_some_system_refuse_the_whole_archive(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        data = good_zip().add(first.encode(), b"x", flags=0x800).add(second.encode(), b"y", flags=0x800).bytes()
        refused(data)


# -- zip: two readers see one thing ------------------------------------------------------------------------------------

ODD_ZIPS: dict[str, Callable[[], bytes]] = {
    "a link": lambda: good_zip().add(b"x", b"SKILL.md", mode=SYMLINK).bytes(),
    "a device": lambda: good_zip().add(b"x", mode=stat.S_IFCHR | 0o600).bytes(),
    "a FIFO": lambda: good_zip().add(b"x", mode=stat.S_IFIFO | 0o600).bytes(),
    "a setuid bit": lambda: good_zip().add(b"x", mode=stat.S_IFREG | 0o4755).bytes(),
    "a folder that is a file": lambda: good_zip().add(b"x/", mode=stat.S_IFREG | 0o644).bytes(),
    "a file that is a folder": lambda: good_zip().add(b"x", mode=stat.S_IFDIR | 0o755).bytes(),
    "a folder with content": lambda: good_zip().add(b"x/", b"data").bytes(),
    "a folder with bytes behind it": lambda: good_zip().add(b"x/", packed=b"hidden", method=0).bytes(),
    "encryption": lambda: good_zip().add(b"x", b"x", flags=1).bytes(),
    "a patch": lambda: good_zip().add(b"x", b"x", flags=0x20).bytes(),
    "another compression": lambda: good_zip().add(b"x", b"x", method=12).bytes(),
    "a size that is too small": lambda: good_zip().add(b"x", b"x" * 5000, size=10).bytes(),
    "a size that is too large": lambda: good_zip().add(b"x", b"x" * 10, size=5000).bytes(),
    "a stored size that lies": lambda: good_zip().add(b"x", b"x" * 10, size=11, method=0).bytes(),
    "a wrong checksum": lambda: good_zip().add(b"x", b"x", crc=1).bytes(),
    "bytes after a compressed stream": lambda: good_zip().add(b"x", b"", packed=b"\3\0more", crc=0).bytes(),
    "data that is not a stream": lambda: good_zip().add(b"x", b"", packed=b"\xff\xff\xff", crc=0).bytes(),
    "a stream that is cut": lambda: good_zip().add(b"x", b"", packed=b"\x4b", crc=0).bytes(),
    "two names for one entry": lambda: good_zip().add(b"a.md", b"x", central_name=b"b.md").bytes(),
    "one entry listed twice": lambda: good_zip().add(b"SKILL.md", SKILL, at=0).bytes(),
    "two entries over the same bytes": lambda: good_zip().add(b"copy.md", SKILL, at=0).bytes(),
    "an entry nowhere": lambda: good_zip().add(b"x", b"x", at=10**6).bytes(),
    "bytes between entries": lambda: good_zip().gap(b"hidden").add(b"x", b"x").bytes(),
    "bytes before the directory": lambda: good_zip().gap(b"hidden").bytes(),
    "an entry that the directory leaves out": lambda: good_zip().gap(zipped({"x": b"x"})[:40]).bytes(),
    "more entries than are counted": lambda: good_zip().add(b"x", b"x").bytes(count=1),
    "fewer entries than are counted": lambda: good_zip().bytes(count=2),
    "bytes after the end": lambda: good_zip().bytes(after=b"more"),
    "two ends": lambda: good_zip().bytes(after=good_zip().bytes()),
    "a link's extra field": lambda: good_zip().add(b"x", b"x", extra=struct.pack("<2H", 0x756E, 0)).bytes(),
    "a zip64 entry": lambda: good_zip().add(b"x", b"x", extra=struct.pack("<2HQ", 1, 8, 1)).bytes(),
    "a damaged extra field": lambda: good_zip().add(b"x", b"x", extra=b"\1\2\3").bytes(),
    "an extra field beyond itself": lambda: good_zip().add(b"x", b"x", extra=struct.pack("<2H", 5, 90)).bytes(),
    "sizes that should follow": lambda: good_zip().add(b"x", b"x", flags=8).bytes(),
    "a program in front": lambda: b"PK\x03\x04" + good_zip().bytes(),
}


@pytest.mark.parametrize("kind", ODD_ZIPS)
def test_a_zip_with_anything_odd_is_refused(kind: str) -> None:
    refused(ODD_ZIPS[kind]())


def test_the_hand_made_zip_opens_without_the_oddity() -> None:
    """Else the tests above would see nothing."""
    made = good_zip().add(b"x/").add(b"x/a.md", b"x" * 5000, mode=stat.S_IFREG | 0o644).add(b"b.md", b"y", method=0)
    assert contents(made.bytes()) == {"SKILL.md": SKILL, "x/a.md": b"x" * 5000, "b.md": b"y"}
    with zipfile.ZipFile(io.BytesIO(made.bytes())) as archive:
        assert archive.testzip() is None


# -- tar ---------------------------------------------------------------------------------------------------------------


def after_records(*records: bytes, kind: bytes = b"x", size: int = 1) -> bytes:
    data = b"".join(records)
    before = tar_header(b"records", len(data), kind) + tar_block(data)
    return gzip.compress(OWN_TAR + before + tar_header(b"x.md", size) + tar_block(b"x" * size) + TAR_END)


ODD_TARS: dict[str, Callable[[], bytes]] = {
    "a link": lambda: tar_with(member("x", type=tarfile.SYMTYPE, linkname="/etc/passwd")),
    "a hard link": lambda: tar_with(member("x", type=tarfile.LNKTYPE, linkname="/etc/passwd")),
    "a hard link within": lambda: tar_with(member("x", type=tarfile.LNKTYPE, linkname="SKILL.md")),
    "a character device": lambda: tar_with(member("x", type=tarfile.CHRTYPE)),
    "a block device": lambda: tar_with(member("x", type=tarfile.BLKTYPE)),
    "a FIFO": lambda: tar_with(member("x", type=tarfile.FIFOTYPE)),
    "a contiguous file": lambda: tar_with(member("x", type=tarfile.CONTTYPE)),
    "a sparse file": lambda: gzip.compress(OWN_TAR + tar_header(b"x", 0, b"S") + TAR_END),
    "a sparse file of the newer kind": lambda: after_records(pax_record(b"GNU.sparse.major", b"1")),
    "a setuid bit": lambda: tar_with(member("x", mode=0o4755)),
    "a folder with content": lambda: gzip.compress(OWN_TAR + tar_header(b"x", 1, b"5") + tar_block(b"x") + TAR_END),
    "a file named as a folder": lambda: gzip.compress(OWN_TAR + tar_header(b"x/", 0) + TAR_END),
    "a file with a target": lambda: gzip.compress(OWN_TAR + tar_header(b"x", 0, target=b"y") + TAR_END),
    "two sizes": lambda: after_records(pax_record(b"size", b"0")),
    "a target among the records": lambda: after_records(pax_record(b"linkpath", b"/x")),
    "a character set": lambda: after_records(pax_record(b"hdrcharset", b"BINARY")),
    "a record twice": lambda: after_records(pax_record(b"path", b"a"), pax_record(b"path", b"b")),
    "a record that is cut": lambda: after_records(b"99 path=x\n"),
    "a record without a length": lambda: after_records(b"path=x\n"),
    "records that name every member": lambda: after_records(pax_record(b"path", b"a"), kind=b"g"),
    "a long target": lambda: after_records(b"/etc/passwd\0", kind=b"K"),
    "an escape in a long name": lambda: after_records(b"../../x\0", kind=b"L"),
    "an escape among the records": lambda: after_records(pax_record(b"path", b"../x")),
    "no name among the records": lambda: after_records(pax_record(b"path", b"")),
    "records of nothing": lambda: gzip.compress(
        OWN_TAR + tar_header(b"r", 11, b"x") + tar_block(pax_record(b"path", b"a")) + TAR_END
    ),
    "a damaged header": lambda: gzip.compress(OWN_TAR + tar_header(b"x").replace(b"x", b"y", 1) + TAR_END),
    "an unknown header": lambda: gzip.compress(OWN_TAR + b"x" * 512 + TAR_END),
    "a size that is not a number": lambda: gzip.compress(
        OWN_TAR + tar_header(b"x").replace(b"00000000000\0", b"\xff" * 12, 1) + TAR_END
    ),
    "an end that is missing": lambda: gzip.compress(OWN_TAR),
    "half an end": lambda: gzip.compress(OWN_TAR + b"\0" * 512 + tar_header(b"x") + TAR_END),
    "members after the end": lambda: gzip.compress(OWN_TAR + TAR_END + tar_header(b"x") + TAR_END),
    "a file that is cut": lambda: gzip.compress(OWN_TAR + tar_header(b"x", 5000) + b"x" * 512),
    "a second stream": lambda: gzip.compress(OWN_TAR + TAR_END) + gzip.compress(tar_header(b"x") + TAR_END),
    "bytes after the stream": lambda: gzip.compress(OWN_TAR + TAR_END) + b"more",
    "a stream that is cut": lambda: gzip.compress(OWN_TAR + TAR_END)[:-6],
    "a wrong checksum of the stream": lambda: gzip.compress(OWN_TAR + TAR_END)[:-8] + b"\0" * 8,
}


@pytest.mark.parametrize("kind", ODD_TARS)
def test_a_tar_with_anything_odd_is_refused(kind: str) -> None:
    refused(ODD_TARS[kind]())


def test_the_hand_made_tar_opens_without_the_oddity() -> None:
    """Else the tests above would see nothing."""
    assert contents(gzip.compress(OWN_TAR + TAR_END)) == {"SKILL.md": SKILL}
    assert contents(after_records(pax_record(b"mtime", b"1"), pax_record(b"size", b"1"))) == {
        "SKILL.md": SKILL,
        "x.md": b"x",
    }
    assert "y.md" in contents(after_records(pax_record(b"path", b"y.md"), pax_record(b"SCHILY.xattr.a", b"\xff")))
    assert "x.md" in contents(after_records(pax_record(b"comment", b"abc"), kind=b"g"))
    assert "z.md" in contents(after_records(b"z.md\0", kind=b"L"))


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_bytes_that_are_neither_zip_nor_tar_are_refused() -> None:
    for data in (b"", b"PK\x05\x06" + b"\0" * 18, b"x" * 1000, SKILL, b"\x1f\x8b", b"PK\x03\x04"):
        refused(data)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_the_limits_are_kept_to_the_byte_and_the_entry(pack: Callable[[dict[str, bytes]], bytes]) -> None:
    rng = random.Random(7)
    files = {"SKILL.md": SKILL, "a.bin": rng.randbytes(4096)}
    room = {"max_unpacked_bytes": 10_240 if pack is tarred else len(SKILL) + 4096, "max_archive_entries": 2}
    assert len(unpack(pack(files), limits=prowess.Limits(**room))) == 2
    for field, bound in room.items():
        smaller = prowess.Limits(**{**room, field: bound - 1})
        assert field in refused(pack(files), "archive-too-large", smaller)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_may_not_unpack_to_many_times_its_size(pack: Callable[[dict[str, bytes]], bytes]) -> None:
    assert "ratio" in refused(pack({"SKILL.md": SKILL, "a": b"\0" * (4 << 20)}), "archive-too-large")
    assert len(unpack(pack({"SKILL.md": SKILL, "a": b"\0" * (1 << 19)}))) == 2, "half a mebibyte is not a bomb"


def test_no_damage_of_a_byte_or_a_cut_passes_for_another_skill(rng: random.Random, full: bool) -> None:
    """Whatever happens to an archive on its way, it opens as it was packed or not at all."""
    for data in (zipped(FILES), streamed_zip(FILES), tarred(FILES)):
        damaged = [data[:size] for size in range(0, len(data), 1 if full else 17)]
        for _ in range(3000 if full else 150):
            at = rng.randrange(len(data))
            damaged.append(data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :])
        for attempt in damaged:
            try:
                found = contents(attempt)
            except prowess.SkillValidationError:
                continue
            assert found == FILES
