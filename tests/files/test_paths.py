"""Whether a path lies inside a folder: by its text, and on the disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from prowess.files.paths import PathResolver, is_inside, is_really_inside, path_inside, resolve_path

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("path", "folder", "inner"),
    [
        ("/a/b", "/a", "b"),
        ("/a/b/c", "/a/", "b/c"),
        ("/a", "/a", ""),
        ("/a", "/a/", ""),
        ("/a", "/", "a"),
        ("/", "/", ""),
        ("/ab", "/a", None),
        ("/a", "/a/b", None),
        ("/", "/a", None),
    ],
)
def test_a_path_is_inside_a_folder_only_at_a_separator(path: str, folder: str, inner: str | None) -> None:
    path, folder = path.replace("/", os.sep), folder.replace("/", os.sep)
    assert path_inside(path, folder) == (None if inner is None else inner.replace("/", os.sep))
    assert is_inside(path, folder) == (inner is not None)


@pytest.mark.needs_links
def test_on_the_disk_links_count_for_where_they_lead(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project" / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "also").symlink_to(tmp_path / "project")
    assert is_inside(str(tmp_path / "project" / "out"), str(tmp_path / "project"))
    assert not is_really_inside(str(tmp_path / "project" / "out"), str(tmp_path / "project"))
    assert is_really_inside(str(tmp_path / "also" / "new"), str(tmp_path / "project"))


@pytest.mark.needs_links
def test_every_link_on_the_way_is_named_below_real_folders(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "real" / "up").symlink_to("../second")
    (tmp_path / "second").symlink_to(tmp_path / "real")
    (tmp_path / "first").symlink_to("second")
    path = tmp_path / "first" / "up" / "inner"
    names = ["first", "second", "real/up", "second"]
    assert resolve_path(str(path)).links == tuple(str(tmp_path / name) for name in names)
    assert resolve_path(str(tmp_path / "real" / "inner")).links == resolve_path(str(tmp_path)).links
    assert resolve_path(str(tmp_path / "missing" / "inner")).links == ()


@pytest.mark.needs_links
def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert set(resolve_path(str(tmp_path / "loop")).links) == {str(tmp_path / "loop")}
    assert set(PathResolver().resolve(str(tmp_path / "loop")).links) == {str(tmp_path / "loop")}


@pytest.mark.needs_links
def test_many_paths_followed_together_end_where_each_ends_by_itself(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "up").symlink_to("..")
    (tmp_path / "real" / "around").symlink_to("inner/deep/../../up/second")
    (tmp_path / "real" / "whole").symlink_to(tmp_path / "first" / "inner")
    (tmp_path / "real" / "slash").symlink_to("inner/")
    (tmp_path / "real" / "here").symlink_to("inner/.")
    (tmp_path / "real" / "gone").symlink_to("missing/x")
    (tmp_path / "second").symlink_to(tmp_path / "real")
    (tmp_path / "first").symlink_to("second")
    names = ("", "inner", "up", "around", "whole", "slash", "here", "gone", "missing", "..", ".", "inner/..", "up/up")
    paths = [f"{tmp_path}/{folder}/{name}" for folder in ("real", "second", "first", "real/up/first") for name in names]
    trails = PathResolver()
    for path in (*paths, *reversed(paths)):
        assert trails.resolve(path) == resolve_path(path), path
        assert resolve_path(path).end == os.path.realpath(path), path
