"""A path as a caller writes it: which parts it names, and which never get that far."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess import PathTraversalError, ResourceError
from prowess.names import DEVICE_NAMES, is_device_name, split_relative_path, split_resource_path


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
def test_other_names_are_no_devices(name: str) -> None:
    assert not is_device_name(name)


@pytest.mark.parametrize("path", ["references/", "SKILL.md/", "references/.", "a//"])
def test_a_path_that_ends_like_a_folder_names_no_file_to_read(path: str) -> None:
    with pytest.raises(ResourceError, match="ends like a folder") as caught:
        split_resource_path(path)
    assert (caught.value.code, caught.value.path) == ("not-a-regular-file", path)
