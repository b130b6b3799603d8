"""A path as a caller writes it: which parts it names, and which never get that far."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess import PathTraversalError, ResourceError, SkillValidationError, UnsafeTreeError
from prowess.fetch.archive.unpack import unpack
from prowess.install.source_tree import check_paths
from prowess.limits import DEFAULT_LIMITS
from prowess.names import DEVICE_NAMES, find_collision, is_device_name, split_relative_path, split_resource_path


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a", ("a",)),
        ("a/b.md", ("a", "b.md")),
        ("./a//b/./c", ("a", "b", "c")),
        ("a/", ("a",)),
        (".hidden/.x", (".hidden", ".x")),
        ("..a/b..c/...d", ("..a", "b..c", "...d")),
        ("a b/é/漢", ("a b", "é", "漢")),
        ("%2e%2e/x", ("%2e%2e", "x")),
        ("a/~b", ("a", "~b")),
        ("console/comma", ("console", "comma")),
    ],
)
def test_a_path_is_split_into_its_folders_and_its_file(path: str, parts: tuple[str, ...]) -> None:
    assert split_relative_path(path) == parts


@given(st.text(st.characters() | st.sampled_from("./\\:~ \0"), max_size=30))
def test_whatever_is_let_through_stays_below_its_folder_on_every_system(path: str) -> None:
    try:
        parts = split_relative_path(path)
    except PathTraversalError:
        return
    assert parts
    for part in parts:
        assert part not in {"", ".", ".."}
        assert not set(part) & set("/\\:\0")
        assert not part.endswith((".", " "))
        assert not is_device_name(part)
    assert not path.startswith(("/", "~"))


@pytest.mark.parametrize("name", [*sorted(DEVICE_NAMES), "NUL", "Con", "aux.txt", "com1.tar.gz", "nul .x"])
def test_device_names_are_known_with_any_extension_and_case(name: str) -> None:
    assert is_device_name(name)
    with pytest.raises(PathTraversalError):
        split_relative_path(f"a/{name}/b")


@pytest.mark.parametrize("name", ["", "console", "null", "com", "com10", "lpt", "a.con", "auxiliary"])
def test_other_names_are_not_devices(name: str) -> None:
    assert not is_device_name(name)


@pytest.mark.parametrize("path", ["references/", "SKILL.md/", "references/.", "a//"])
def test_a_path_that_ends_like_a_folder_names_no_file_to_read(path: str) -> None:
    with pytest.raises(ResourceError, match="ends like a folder") as caught:
        split_resource_path(path)
    assert (caught.value.code, caught.value.path) == ("not-a-regular-file", path)


@pytest.mark.parametrize(
    ("paths", "pair"),
    [
        (["a.md", "b/a.md"], None),
        (["x².md", "x2.md"], None),  # no file system takes these for one
        (["ﬁle.md", "file.md"], ("ﬁle.md", "file.md")),
        (["a.md", "A.md"], ("a.md", "A.md")),
        (["Straße", "STRASSE"], ("Straße", "STRASSE")),
        (["caf\u00e9", "cafe\u0301"], ("caf\u00e9", "cafe\u0301")),
        (["Docs/a.md", "docs/b.md"], ("Docs", "docs")),
        (["docs", "DOCS/b.md"], ("DOCS", "docs")),
    ],
)
def test_paths_collide_that_some_file_system_takes_for_one(paths: list[str], pair: tuple[str, str] | None) -> None:
    assert find_collision(paths) == pair


def test_install_and_archive_agree_on_which_paths_collide() -> None:
    for name in ("x².md", "X2.md"):
        assert _is_installed("x2.md", name) == _is_unpacked("x2.md", name) == (name == "x².md")


def _is_installed(*paths: str) -> bool:
    try:
        check_paths(paths, DEFAULT_LIMITS)
    except UnsafeTreeError:
        return False
    return True


def _is_unpacked(*paths: str) -> bool:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in ("SKILL.md", *paths):
            archive.writestr(path, "---\nname: a\ndescription: b\n---\n")
    try:
        unpack(packed.getvalue())
    except SkillValidationError:
        return False
    return True
