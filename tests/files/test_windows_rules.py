"""What decides by the rules of Windows: as far as it is a decision and not a call of the system, on every platform."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from prowess.errors import ResourceNotFoundError
from prowess.files import syscalls
from prowess.files.contained_open import IGNORES_CASE, best_open_method, is_link_info, open_beneath
from prowess.files.delete import delete_tree
from prowess.files.directory import Folder
from prowess.files.identity import is_settled
from prowess.files.paths import plain_windows_path, windows_path_inside
from prowess.files.read import as_resource_error
from prowess.files.tree import decide_executable, digest_on_disk, find_guesses, hash_bytes, take_recorded_bits
from prowess.files.write import NewFile, sync_tree, write_tree

SYMLINK, JUNCTION, CLOUD_FILE = 0xA000000C, 0xA0000003, 0x9000001A
ACCESS_DENIED, SHARING_VIOLATION, DISK_FULL = 5, 32, 112


def windows_error(kind: type[OSError], winerror: int, number: int = errno.EACCES) -> OSError:
    """An error as Windows makes it; elsewhere Python does not know the second number."""
    error = kind(number, os.strerror(number))
    cast("Any", error).winerror = winerror
    return error


def test_a_tree_is_flushed_through_handles_that_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    flushed: list[int] = []

    def fsync(fd: int) -> None:
        """What Windows does: it refuses a handle that was opened to read."""
        info = os.fstat(fd)
        if stat.S_ISREG(info.st_mode):
            flushed.append(info.st_ino)
            if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "fsync", fsync)
    write_tree(str(tmp_path), [NewFile("SKILL.md", b"x"), NewFile("run.sh", b"#!/bin/sh\n", executable=True)])
    sync_tree(str(tmp_path))
    assert sorted(flushed) == sorted(path.stat().st_ino for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("mode", "tag", "is_link"),
    [
        (stat.S_IFLNK, SYMLINK, True),
        (stat.S_IFDIR, JUNCTION, True),
        (stat.S_IFREG, CLOUD_FILE, False),
        (stat.S_IFDIR, CLOUD_FILE, False),
        (stat.S_IFDIR, 0, False),
    ],
)
def test_a_junction_is_a_link_and_a_placeholder_is_not(mode: int, tag: int, is_link: bool) -> None:
    info = SimpleNamespace(st_mode=mode, st_reparse_tag=tag)
    assert is_link_info(cast("os.stat_result", info)) is is_link


@pytest.mark.parametrize(
    ("path", "folder", "inner"),
    [
        (r"C:\a\b", r"C:\a", "b"),
        (r"\\?\C:\a\b\c", r"C:\a", r"b\c"),
        (r"C:\a\b", r"\\?\C:\a", "b"),
        (r"\\?\UNC\host\share\a", r"\\host\share", "a"),
        (r"c:\A\b", r"C:\a", "b"),
        ("C:/a/b", "C:\\a\\", "b"),
        (r"C:\a", r"C:\A", ""),
        ("C:\\", "C:\\", ""),
        (r"C:\ab", r"C:\a", None),
        (r"D:\a\b", r"C:\a", None),
        (r"\\?\Volume{1}\a", r"C:\a", None),
    ],
)
def test_a_path_of_windows_is_inside_however_it_is_spelled(path: str, folder: str, inner: str | None) -> None:
    assert windows_path_inside(path, folder) == inner


def test_a_volume_without_a_letter_keeps_its_prefix() -> None:
    assert plain_windows_path(r"\\?\Volume{1}\a/b") == r"\\?\Volume{1}\a\b"


def test_a_name_that_windows_refuses_is_not_found() -> None:
    error = as_resource_error(windows_error(OSError, 123, errno.EINVAL), "a?b")
    assert isinstance(error, ResourceNotFoundError)


def test_a_change_is_tried_again_while_another_program_has_the_file_open() -> None:
    tries: list[int] = []

    def change() -> None:
        tries.append(len(tries))
        if len(tries) == 1:
            raise windows_error(PermissionError, SHARING_VIOLATION)

    syscalls.retry_while_open(change)
    assert tries == [0, 1]


@pytest.mark.parametrize("winerror", [ACCESS_DENIED, SHARING_VIOLATION])
def test_a_file_that_stays_open_is_an_error_in_the_end(winerror: int) -> None:
    with pytest.raises(PermissionError):
        syscalls.retry_while_open(lambda: fail_with(windows_error(PermissionError, winerror)), seconds=0)


def test_other_errors_are_not_waited_for() -> None:
    tries: list[None] = []

    def change() -> None:
        tries.append(None)
        raise windows_error(OSError, DISK_FULL, errno.ENOSPC)

    with pytest.raises(OSError, match="space"):
        syscalls.retry_while_open(change)
    assert len(tries) == 1


def fail_with(error: OSError) -> None:
    raise error


def test_a_missing_folder_is_reported_as_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Folder(str(tmp_path / "nothing"))


def test_a_folder_is_not_opened_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        open_beneath(str(tmp_path), ("folder",), way="portable")


def test_read_only_files_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    write_tree(str(tmp_path / "snapshot"), [NewFile("a", b"x")], read_only=True)
    delete_tree(str(tmp_path / "snapshot"))
    assert list(tmp_path.iterdir()) == []


def test_only_a_time_of_change_settles_an_identity() -> None:
    info = SimpleNamespace(st_mtime_ns=0, st_ctime_ns=0)
    assert is_settled(cast("os.stat_result", info)) is (os.name != "nt")


def test_a_file_in_another_case_is_not_the_file(tmp_path: Path) -> None:
    (tmp_path / "skill.md").write_bytes(b"x")
    with Folder(str(tmp_path)) as folder:
        assert folder.read_head("SKILL.md", 10) == ("", None, None, None)
        assert folder.read_head("skill.md", 10)[1] == b"x"


@pytest.mark.skipif(sys.platform != "win32", reason="NOT TESTED: only Windows lacks handles of folders")
def test_windows_opens_by_paths_and_ignores_case() -> None:
    assert (best_open_method(), IGNORES_CASE) == ("portable", True)


# -- executable bits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "head", "has_bits", "executable"),
    [
        (0o755, b"x", True, True),
        (0o644, b"#!/bin/sh\n", True, False),
        (0o777, b"x", False, False),
        (0o666, b"#!/bin/sh\n", False, True),
    ],
)
def test_without_bits_the_first_bytes_decide(mode: int, head: bytes, has_bits: bool, executable: bool) -> None:
    assert decide_executable(mode, head, has_bits=has_bits) is executable


def test_the_lock_file_decides_about_bits_where_the_disk_has_none() -> None:
    recorded = {"tool": hash_bytes(b"tool", executable=True), "gone": hash_bytes(b"gone", executable=True)}
    found = {"tool": hash_bytes(b"tool", executable=False), "new": hash_bytes(b"#!", executable=True)}
    assert take_recorded_bits(found, recorded, has_bits=True) == found
    assert take_recorded_bits(found, recorded, has_bits=False) == {"tool": recorded["tool"], "new": found["new"]}


def test_a_tree_is_recognized_by_its_bytes_where_the_disk_has_no_bits() -> None:
    trees = [{"tool": hash_bytes(b"tool", executable=executable)} for executable in (True, False)]
    assert len({digest_on_disk(tree, has_bits=False) for tree in trees}) == 1
    assert len({digest_on_disk(tree, has_bits=True) for tree in trees}) == 2


def test_a_guess_names_the_files() -> None:
    assert find_guesses(["a"], "/skills/x", has_bits=True) == ()
    assert find_guesses([], "/skills/x", has_bits=False) == ()
    (issue,) = find_guesses(["run.sh", "b", "c"], "/skills/x", has_bits=False)
    assert (issue.code, issue.severity, issue.path) == ("guessed-executable", "info", "/skills/x")
    assert issue.message.endswith("run.sh and 2 more")


# -- junctions ---------------------------------------------------------------------------------------------------------


def make_no_junction(target: str, path: str) -> None:
    """What Windows does on a volume without junctions: it makes a folder, and fails to make a junction of it."""
    assert Path(target).is_dir()
    Path(path).mkdir()
    raise windows_error(OSError, 50, errno.EINVAL)


def test_a_junction_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    assert not syscalls.create_junction(str(tmp_path), str(tmp_path / "link"), make=make_no_junction)
    assert list(tmp_path.iterdir()) == []
