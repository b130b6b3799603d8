"""What stands for another folder is a link, whether the system calls it a symbolic link or a junction."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from prowess.files import syscalls
from prowess.files.contained_open import open_beneath
from prowess.files.delete import delete_tree
from prowess.files.directory import Folder
from prowess.files.paths import is_link, is_link_into, is_link_to, read_link, resolve_path
from prowess.files.tree import read_tree
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Linked:
    """A folder with a link named ``link`` in it, and the folder outside of it to which the link leads."""

    folder: Path
    target: Path

    @property
    def path(self) -> str:
        return str(self.folder / "link")


@pytest.fixture(
    params=[
        pytest.param("symlink", marks=pytest.mark.needs_links),
        pytest.param("junction", marks=pytest.mark.needs_junctions),
    ]
)
def linked(request: pytest.FixtureRequest, tmp_path: Path) -> Linked:
    made = Linked(tmp_path / "folder", tmp_path / "target")
    for folder in (made.folder, made.target):
        folder.mkdir()
        (folder / "a.md").write_bytes(b"a")
    if request.param == "symlink":
        syscalls.create_link(str(made.target), made.path)
    else:
        assert syscalls.create_junction(str(made.target), made.path)
    return made


def test_a_link_says_where_it_leads(linked: Linked) -> None:
    assert is_link(linked.path)
    assert not is_link(str(linked.target))
    assert is_link_to(linked.path, str(linked.target))
    assert is_link_into(linked.path, str(linked.target.parent))
    assert not is_link_into(linked.path, str(linked.folder))
    assert read_link(linked.path) == str(linked.target)
    assert resolve_path(linked.path) == (os.path.realpath(linked.target), (linked.path,))


def test_a_link_whose_folder_is_gone_is_still_a_link(linked: Linked) -> None:
    delete_tree(str(linked.target))
    assert is_link(linked.path)
    assert is_link_to(linked.path, str(linked.target))


def test_a_link_is_listed_and_never_entered(linked: Linked) -> None:
    with Folder(str(linked.folder)) as folder:
        entries = folder.list_entries()
    assert (list(entries.folders), list(entries.links)) == ([], ["link"])
    tree = read_tree(str(linked.folder), DEFAULT_LIMITS)
    assert [path for path, *_ in tree.files] == ["a.md"]
    assert tree.problems == [("link-in-skill", "link")]
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        open_beneath(str(linked.folder), ("link", "a.md"))


def test_what_is_deleted_is_the_link_and_not_its_target(linked: Linked) -> None:
    syscalls.delete_file(linked.path)
    assert [path.name for path in linked.folder.iterdir()] == ["a.md"]
    assert (linked.target / "a.md").read_bytes() == b"a"


def test_a_tree_is_deleted_without_the_targets_of_its_links(linked: Linked) -> None:
    delete_tree(str(linked.folder))
    assert not linked.folder.exists()
    assert (linked.target / "a.md").read_bytes() == b"a"
