"""A tree is walked without following a link, listed in one order, bounded, and hashed by one rule."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from prowess import ResourceTooLargeError
from prowess.files.tree import hash_file, hash_tree, list_tree
from prowess.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = Limits()


def write(base: Path, *paths: str) -> None:
    for path in paths:
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_bytes(path.encode())


@pytest.mark.needs_case
def test_a_tree_lists_files_in_byte_order_of_their_paths(tmp_path: Path) -> None:
    paths = ["b", "a/z", "a-b", "a.b", "a0", "ab", "B", "é", "z/é/x", ".hidden", ".x/y", "_u", "a/b/c"]
    write(tmp_path, *paths)
    tree = list_tree(str(tmp_path), (), LIMITS)
    assert tree.files == sorted(paths, key=lambda path: path.encode())
    assert (tree.links, tree.others, tree.unreadable, tree.bound) == ([], [], [], "")


def test_git_folders_are_left_out_of_a_tree(tmp_path: Path) -> None:
    write(tmp_path, "a", ".git/config", "sub/.git/config", ".gitignore", "x.git/a")
    assert list_tree(str(tmp_path), (), LIMITS).files == [".gitignore", "a", "x.git/a"]


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_links_and_special_files_are_named_and_not_entered(mixed: Path) -> None:
    write(mixed, "zd/in")
    (mixed / "zd" / "up").symlink_to("..")
    tree = list_tree(str(mixed), (), LIMITS)
    assert tree.files == ["af", "zd/in", "zf"]
    assert tree.links == ["al", "zd/up", "zl"]
    assert tree.others == ["ap", "zp"]


def test_a_tree_stops_at_the_limit_of_files(tmp_path: Path) -> None:
    write(tmp_path, *(f"f{n}" for n in range(5)))
    assert list_tree(str(tmp_path), (), replace(LIMITS, max_files_per_skill=5)).bound == ""
    tree = list_tree(str(tmp_path), (), replace(LIMITS, max_files_per_skill=4))
    assert (len(tree.files), tree.bound) == (4, "too-many-files")


def test_a_tree_stops_at_the_limit_of_files_in_many_folders(tmp_path: Path) -> None:
    write(tmp_path, *(f"d{n}/f" for n in range(5)))
    assert list_tree(str(tmp_path), (), replace(LIMITS, max_files_per_skill=5)).bound == ""
    assert list_tree(str(tmp_path), (), replace(LIMITS, max_files_per_skill=4)).bound == "too-many-files"


def test_a_tree_stops_at_the_limit_of_entries(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"d{number}").mkdir()
    assert list_tree(str(tmp_path), (), replace(LIMITS, max_entries_per_skill=10)).bound == ""
    assert list_tree(str(tmp_path), (), replace(LIMITS, max_entries_per_skill=9)).bound == "too-many-files"


def test_a_tree_stops_at_the_limit_of_depth(tmp_path: Path) -> None:
    write(tmp_path, "1/2/3/f")
    assert list_tree(str(tmp_path), (), replace(LIMITS, max_depth_per_skill=4)).bound == ""
    tree = list_tree(str(tmp_path), (), replace(LIMITS, max_depth_per_skill=3))
    assert (tree.files, tree.bound) == ([], "too-deep")


@pytest.mark.needs_modes
def test_a_file_is_hashed_with_its_size_and_executable_bit(tmp_path: Path) -> None:
    write(tmp_path, "run", "text")
    (tmp_path / "run").chmod(0o744)
    (tmp_path / "text").chmod(0o655)
    assert hash_file(str(tmp_path), ("run",), 10) == (3, True, hashlib.sha256(b"run").hexdigest())
    assert hash_file(str(tmp_path), ("text",), 10) == (4, False, hashlib.sha256(b"text").hexdigest())
    with pytest.raises(ResourceTooLargeError):
        hash_file(str(tmp_path), ("text",), 3)


def test_the_quick_way_to_hash_a_file_and_the_careful_one_agree(tmp_path: Path) -> None:
    write(tmp_path, "plain", "a/é", "a/run", "one-name")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "long").write_bytes(b"x" * (1 << 20))
    (tmp_path / "longer").write_bytes(b"x" * ((1 << 20) + 1))
    (tmp_path / "other-name").hardlink_to(tmp_path / "one-name")
    (tmp_path / "a" / "run").chmod(0o755)
    hashed = hash_tree(str(tmp_path), LIMITS)
    assert hashed.problems == []
    assert hashed.files == {
        path: hash_file(str(tmp_path), tuple(path.split("/")), 1 << 30)
        for path in list_tree(str(tmp_path), (), LIMITS).files
    }
    assert len(hashed.files) == 8


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_tree_is_not_hashed_by_a_name_of_a_file_that_belongs_to_somebody_else(tmp_path: Path) -> None:
    write(tmp_path, "theirs", "tree/own")
    os.chown(tmp_path / "theirs", 12345, 12345)
    (tmp_path / "tree" / "planted").hardlink_to(tmp_path / "theirs")
    hashed = hash_tree(str(tmp_path / "tree"), LIMITS)
    assert list(hashed.files) == ["own"]
    assert hashed.problems == [("hard-link", "planted")]
