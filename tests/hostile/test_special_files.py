"""Pipes, sockets, devices and folders in place of files."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from prowess.literals import OpenMethod
    from tests.hostile.conftest import Children
    from tests.hostile.invariants import Library

VALID = "---\nname: evil\ndescription: d\n---\nBody.\n"
GENEROUS = 2.0  # seconds; what is measured takes milliseconds on an idle machine
MIB = 1 << 20


def node(path: Path, kind: int, major: int = 0, minor: int = 0) -> None:
    """Something that is neither a file nor a folder; only root makes devices, everyone the rest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(PermissionError):
        os.mknod(path, kind | 0o644, os.makedev(major, minor))


def folder(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "inner.md").write_text("inner\n", encoding="utf-8")


KINDS = {
    "fifo": (stat.S_IFIFO,),
    "socket": (stat.S_IFSOCK,),
    "zero": (stat.S_IFCHR, 1, 5),
    "terminal": (stat.S_IFCHR, 5, 0),
    "block": (stat.S_IFBLK, 7, 0),
}


def test_a_skill_file_that_is_not_a_file_is_rejected_at_once(
    library: Library, child: Children, open_method: OpenMethod
) -> None:
    """Case 57: a FIFO never blocks, and neither does anything else that is not a regular file."""
    for kind, what in KINDS.items():
        node(library.root / kind / "SKILL.md", *what)
    outcome = child.answer(
        """
result = [[i.code, i.path] for i in library.scan().issues]
with library.assert_unchanged():
    for _, path in result:
        for mode in invariants.MODES:
            invariants.catch_refusal(lambda: prowess.read_metadata(path, mode=mode))
            invariants.catch_refusal(lambda: prowess.parse_skill_file(path, mode=mode))
        invariants.catch_refusal(lambda: prowess.scan(os.path.dirname(path), mode="strict"), "not-a-regular-file")
        assert [i.severity for i in prowess.validate(path)] == ["error"]
""",
        library,
        open_method=open_method,
    )
    made = sorted(
        str(library.root / kind / "SKILL.md") for kind in KINDS if (library.root / kind / "SKILL.md").exists()
    )
    assert {"fifo", "socket"} <= {path.split("/")[-2] for path in made}
    assert outcome.result == [["not-a-regular-file", path] for path in made]
    assert outcome.seconds < GENEROUS


def test_a_resource_that_is_not_a_file_is_refused_at_once(
    library: Library, child: Children, open_method: OpenMethod
) -> None:
    """Case 58: a FIFO, a socket, a character or block device is neither listed nor read nor hashed."""
    library.write(VALID)
    for kind, what in KINDS.items():
        node(library.evil / "references" / kind, *what)
    outcome = child.answer(
        """
skill = library.scan()["evil"]
files, resources = skill.files(), skill.resources()
named = sorted({i.field for listing in (files, resources) for i in listing.issues if i.code == "special-file"})
with library.assert_unchanged():
    for path in named:
        invariants.catch_refusal(lambda: skill.read_resource(path), "not-a-regular-file")
        invariants.catch_refusal(lambda: skill.read_bytes(path), "not-a-regular-file")
    invariants.catch_refusal(skill.digest, "special-file")
result = [list(files), list(resources.paths), named]
""",
        library,
        open_method=open_method,
        memory=128,
    )
    made = sorted(f"references/{path.name}" for path in (library.evil / "references").iterdir())
    assert {"references/fifo", "references/socket"} <= set(made)
    assert outcome.result == [["SKILL.md"], [], made]
    assert outcome.seconds < GENEROUS


@pytest.mark.parametrize("at", ["evil/SKILL.md", "evil/references/x"])
def test_the_twin_waits_for_a_pipe_for_ever(library: Library, child: Children, at: str) -> None:
    """Twin of cases 57, 58: opening a FIFO blocks until somebody writes to it."""
    if at != "evil/SKILL.md":
        library.write(VALID)
    node(library.root / at, *KINDS["fifo"])
    assert child("naive.read(library.root, args[0])", library, at, kill_after=1).killed


MAGIC = ["/dev/zero", "/dev/stdin", "/proc/self/environ", "/proc/self/fd/0", "/dev/tty", "/proc/self/mem", "/dev/fd/0"]


def test_a_link_to_a_device_or_to_the_process_itself_is_refused_unread(
    library: Library, child: Children, open_method: OpenMethod
) -> None:
    """Case 59: endless devices, standard input, the environment, open descriptors and the terminal."""
    library.write(VALID)
    for number, target in enumerate(MAGIC):
        (library.root / f"magic{number}").mkdir()
        (library.root / f"magic{number}/SKILL.md").symlink_to(target)
        (library.evil / f"leak{number}.md").symlink_to(target)
    outcome = child.answer(
        """
catalog = library.scan()
skill = catalog["evil"]
paths = [path.name for path in library.evil.glob("leak*")]
with library.assert_unchanged():
    readers = (skill.read_resource, skill.read_bytes)
    codes = [invariants.catch_refusal(lambda: read(path)).code for path in paths for read in readers]
errors = [[i.code, i.path] for i in catalog.issues if i.severity == "error"]
result = [errors, codes, list(skill.files()), sys.stdin.read()]
""",
        library,
        open_method=open_method,
        memory=128,
        stdin="TOPSECRET-MARKER",
        env={"SECRET": "TOPSECRET-MARKER"},
    )
    issues, codes, files, left = outcome.result
    assert issues == [["link-refused", str(library.root / f"magic{n}/SKILL.md")] for n in range(len(MAGIC))]
    assert codes == ["path-escape"] * 2 * len(MAGIC)
    assert files == ["SKILL.md"]
    assert left == "TOPSECRET-MARKER"
    assert not [path for path in outcome.read if not path.startswith(str(library.root))]
    assert outcome.seconds < GENEROUS


def test_the_twin_reads_devices_and_the_environment(library: Library, child: Children) -> None:
    """Twin of case 59: it fills the memory, or hands out what the process knows."""
    library.put("evil/zero", "")
    (library.evil / "zero").unlink()
    (library.evil / "zero").symlink_to("/dev/zero")
    (library.evil / "environ").symlink_to("/proc/self/environ")
    endless = child("naive.read(library.evil, 'zero')", library, memory=64)
    assert endless.killed or endless.raised == "MemoryError"
    leak = child("result = naive.read(library.evil, 'environ')", library, env={"SECRET": "TOPSECRET-MARKER"})
    assert "TOPSECRET-MARKER" in leak.result


def test_a_skill_file_that_is_a_folder_is_rejected(library: Library, child: Children, open_method: OpenMethod) -> None:
    """Case 60: SKILL.md is a folder with files in it."""
    folder(library.evil / "SKILL.md")
    outcome = child.answer(
        """
result = [[i.code, i.path] for i in library.scan().issues]
library.assert_refused(lambda: prowess.scan(library.root, mode="strict"), "not-a-regular-file")
library.assert_refused(lambda: prowess.read_metadata(library.evil), "not-a-regular-file")
assert [i.severity for i in prowess.validate(library.evil)] == ["error"]
""",
        library,
        open_method=open_method,
    )
    assert outcome.result == [["not-a-regular-file", str(library.evil / "SKILL.md")]]


def test_a_resource_that_is_a_folder_is_refused(library: Library, child: Children, open_method: OpenMethod) -> None:
    """Case 60: a folder is not a resource, whether it ends in a slash or not."""
    library.write(VALID)
    folder(library.evil / "references")
    outcome = child.answer(
        """
skill = library.scan()["evil"]
paths = ("references", "references/", "./references/.")
readers = (skill.read_resource, skill.read_bytes)
result = [library.assert_refused(lambda: read(path)).code for path in paths for read in readers]
""",
        library,
        open_method=open_method,
    )
    assert outcome.result == ["not-a-regular-file"] * 6


def test_the_twin_fails_on_a_folder_with_a_bare_error(library: Library, naive: ModuleType) -> None:
    """Twin of case 60: it raises the error of the system, which does not name the skill."""
    folder(library.evil / "references")
    with pytest.raises(IsADirectoryError):
        naive.read(library.evil, "references")
    with pytest.raises(IsADirectoryError):
        naive.skill(library.evil)
