"""What tells that files are still what they were."""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING

import pytest

from prowess import Limits
from prowess.errors import ResourceTooLargeError
from prowess.files.identity import (
    fingerprint_tree,
    hash_with_identity,
    list_identities,
    read_with_identity,
    watched_identity,
)

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = Limits()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.md", "a/x.md", "a-b/y.md", ".hidden", ".git/config"):
        (tmp_path / "skill" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "skill" / name).write_text(name, encoding="utf-8")
    return tmp_path


def test_every_file_is_marked_in_byte_order(tree: Path) -> None:
    found = list_identities(str(tree), ("skill",), LIMITS)
    assert [path for path, _ in found.files] == [".hidden", "a-b/y.md", "a/x.md", "b.md"]
    info = (tree / "skill" / "b.md").stat()
    assert found.files[-1][1] == (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_links_and_fifos_are_not_files(tree: Path) -> None:
    (tree / "skill" / "link.md").symlink_to("b.md")
    (tree / "skill" / "away").symlink_to(tree)
    os.mkfifo(tree / "skill" / "pipe")
    assert len(list_identities(str(tree), ("skill",), LIMITS).files) == 4


@pytest.mark.parametrize(
    ("limits", "bound"),
    [
        (Limits(max_files_per_skill=2), "too-many-files"),
        (Limits(max_entries_per_skill=2), "too-many-files"),
        (Limits(max_depth_per_skill=1), "too-deep"),
    ],
)
def test_the_walk_is_bounded_and_says_so(tree: Path, limits: Limits, bound: str) -> None:
    assert list_identities(str(tree), ("skill",), limits).bound == bound


def test_a_hash_goes_with_the_identity_of_what_was_read(tree: Path) -> None:
    old = time.time() - 10
    os.utime(tree / "skill" / "b.md", (old, old))
    data, read = read_with_identity(str(tree), ("skill", "b.md"), 100)
    hashed = hash_with_identity(str(tree), ("skill", "b.md"), 100)
    assert data == b"b.md"
    assert read.digest == hashed.digest == hashlib.sha256(b"b.md").digest()
    assert read.identity == dict(list_identities(str(tree), ("skill",), LIMITS).files)["b.md"]


def test_what_was_written_just_now_may_change_unseen(tree: Path) -> None:
    """Two writes within one tick of the clock look alike, so such a hash is not relied on."""
    (tree / "skill" / "b.md").write_text("new", encoding="utf-8")
    assert not hash_with_identity(str(tree), ("skill", "b.md"), 100).settled


@pytest.mark.parametrize("read", [hash_with_identity, read_with_identity])
def test_a_file_over_the_limit_is_refused(tree: Path, read: object) -> None:
    assert callable(read)
    with pytest.raises(ResourceTooLargeError):
        read(str(tree), ("skill", "b.md"), 3)


def test_a_mark_of_a_tree_changes_with_anything_in_it(tree: Path) -> None:
    marks = [fingerprint_tree(str(tree), LIMITS)]
    assert fingerprint_tree(str(tree), LIMITS) == marks[0]
    (tree / "skill" / "new").mkdir()
    marks.append(fingerprint_tree(str(tree), LIMITS))
    (tree / "skill" / "b.md").write_text("xxxx", encoding="utf-8")
    marks.append(fingerprint_tree(str(tree), LIMITS))
    (tree / "skill" / "a" / "x.md").rename(tree / "skill" / "a" / "z.md")
    marks.append(fingerprint_tree(str(tree), LIMITS))
    (tree / "skill" / "b.md").unlink()
    marks.append(fingerprint_tree(str(tree), LIMITS))
    assert len(set(marks)) == 5
    (tree / "skill" / ".git" / "config").write_text("other", encoding="utf-8")
    assert fingerprint_tree(str(tree), LIMITS) == marks[-1]


def test_a_tree_that_is_not_there_has_a_mark(tree: Path) -> None:
    missing = fingerprint_tree(str(tree / "none"), LIMITS)
    (tree / "none").mkdir()
    assert fingerprint_tree(str(tree / "none"), LIMITS) != missing
    assert watched_identity(str(tree / "skill")) is not None
    assert watched_identity(str(tree / "nothing")) is None
