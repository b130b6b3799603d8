"""Trees are written, made durable, hashed, read and deleted, and no link is followed, even one swapped in."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.files import syscalls
from prowess.files.delete import delete_tree
from prowess.files.paths import is_link, is_real_folder, read_inode, read_link
from prowess.files.tree import digest_tree, hash_tree, read_tree
from prowess.files.write import NewFile, sync_tree, write_atomic, write_tree
from tests.repositories import skill_text

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = (NewFile("SKILL.md", skill_text("x").encode()), NewFile("a/b/run.sh", b"#!/bin/sh\n", executable=True))


@pytest.fixture
def watched() -> Iterator[list[tuple[str, str, str]]]:
    """Every change that is made, as it is made."""
    seen: list[tuple[str, str, str]] = []
    before = syscalls.set_watcher(lambda name, moment, path: seen.append((name, moment, path)))
    yield seen
    syscalls.set_watcher(before)


@pytest.mark.needs_modes
def test_a_tree_has_the_modes_of_its_files_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_tree(str(tmp_path), FILES)
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("SKILL.md", "a/b/run.sh")}
    assert modes == {"SKILL.md": 0o644, "a/b/run.sh": 0o755}


@pytest.mark.needs_posix
def test_every_file_and_folder_of_a_tree_is_made_durable(tmp_path: Path, watched: list[tuple[str, str, str]]) -> None:
    write_tree(str(tmp_path), FILES)
    watched.clear()
    sync_tree(str(tmp_path))
    synced = {path for name, moment, path in watched if (name, moment) == ("fsync", "after")}
    assert synced == {str(tmp_path / part) for part in ("", "SKILL.md", "a", "a/b", "a/b/run.sh")}


@pytest.mark.needs_posix
def test_a_file_is_replaced_whole_and_its_folder_made_durable(
    tmp_path: Path, watched: list[tuple[str, str, str]]
) -> None:
    path = tmp_path / "x"
    path.write_text("old", encoding="utf-8")
    write_atomic(str(path), b"new")
    assert path.read_bytes() == b"new"
    names = [name for name, moment, _ in watched if moment == "after"]
    assert names == ["create", "write", "fsync", "rename", "fsync"]
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


# -- deleting ----------------------------------------------------------------------------------------------------------


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_links_are_deleted_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x", encoding="utf-8")
    tree = tmp_path / "tree"
    (tree / "a").mkdir(parents=True)
    (tree / "a" / "link").symlink_to(outside)
    (tree / "file").symlink_to(outside / "kept")
    (tree / "dead").symlink_to("nowhere")
    os.mkfifo(tree / "pipe")
    delete_tree(str(tree))
    assert not tree.exists()
    assert (outside / "kept").is_file()
    (tmp_path / "link").symlink_to(outside)
    delete_tree(str(tmp_path / "link"))
    assert (outside / "kept").is_file()
    delete_tree(str(tmp_path / "not there"))


@pytest.mark.needs_links
def test_a_folder_swapped_for_a_link_while_it_is_deleted_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("x", encoding="utf-8")
    tree = tmp_path / "tree"
    for name in ("a", "b"):
        (tree / name).mkdir(parents=True)
        (tree / name / "victim").write_text("mine", encoding="utf-8")
    swapped: list[str] = []

    def swap(name: str, moment: str, path: str) -> None:
        if (name, moment) == ("unlink", "before") and not swapped:
            folder = os.path.dirname(path)  # noqa: PTH120
            swapped.append(folder)
            os.rename(folder, tmp_path / "moved")  # noqa: PTH104
            os.symlink(outside, folder)  # noqa: PTH211

    before = syscalls.set_watcher(swap)
    try:
        with pytest.raises(OSError, match=r"Not a directory|No such file|cannot|rmdir"):
            delete_tree(str(tree))
    finally:
        syscalls.set_watcher(before)
    assert swapped
    assert (outside / "victim").read_text(encoding="utf-8") == "x"


# -- hashing and reading -----------------------------------------------------------------------------------------------


def test_the_hash_of_a_tree_is_the_skills_digest(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    write_tree(str(folder), FILES)
    (folder / ".git").mkdir()
    (folder / ".git" / "x").write_text("x", encoding="utf-8")
    found = hash_tree(str(folder), prowess.Limits())
    assert digest_tree(found.files) == prowess.read_metadata(folder).digest()
    assert found.problems == []
    assert read_tree(str(folder), prowess.Limits()).files == [tuple(file) for file in FILES]


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_what_is_not_a_file_is_named_and_not_opened(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    if sys.platform == "linux":
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_bytes(b"x")
        assert ("bad-file-name", "'\\udcff'") in hash_tree(str(tmp_path), prowess.Limits()).problems
        assert ("bad-file-name", "'\\udcff'") in read_tree(str(tmp_path), prowess.Limits()).problems
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).unlink()
    expected = {("link-in-skill", "link"), ("link-in-skill", "folder/link"), ("special-file", "pipe")}
    assert set(hash_tree(str(tmp_path), prowess.Limits()).problems) == expected
    assert set(read_tree(str(tmp_path), prowess.Limits()).problems) == expected


def test_a_tree_beyond_the_bounds_is_cut_and_says_so(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}").write_bytes(b"x" * 10)
    small = prowess.Limits(max_files_per_skill=2, max_install_files=2, max_digest_bytes=15)
    odd = {code for code, _ in hash_tree(str(tmp_path), small).problems}
    assert odd <= {"too-many-files", "too-many-bytes"}
    assert odd
    deep = tmp_path.joinpath(*"abcdefghijklmnopqrstuvwxyz")
    deep.mkdir(parents=True)
    assert ("too-deep", "/".join("abcdefghijklmnopqrstuvwxy")) in hash_tree(str(tmp_path), prowess.Limits()).problems
    with pytest.raises(prowess.ResourceTooLargeError):
        read_tree(str(tmp_path), prowess.Limits(max_install_bytes=15, max_depth_per_skill=64))


@pytest.mark.needs_links
def test_links_folders_and_inode_numbers_are_those_of_the_entry_itself(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("x")
    assert (is_link(str(tmp_path / "link")), read_link(str(tmp_path / "link"))) == (True, "x")
    assert (is_link(str(tmp_path)), read_link(str(tmp_path)), is_real_folder(str(tmp_path))) == (False, None, True)
    assert not is_link(str(tmp_path / "nothing"))
    assert read_inode(str(tmp_path / "nothing")) == 0
    number = read_inode(str(tmp_path / "link"))
    (tmp_path / "link").rename(tmp_path / "other")
    assert read_inode(str(tmp_path / "other")) == number
