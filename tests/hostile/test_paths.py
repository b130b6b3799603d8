"""Paths that lead out of a skill, on this platform or on another one."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.files.contained_open import best_open_method, open_beneath

if TYPE_CHECKING:
    from types import ModuleType

    from prowess.literals import OpenMethod
    from tests.hostile.conftest import Children
    from tests.hostile.invariants import Library

READ_ALL = """
skill = library.scan()["evil"]
readers = (skill.read_resource, skill.read_bytes, lambda path: prowess.scan(library.root).read_resource("evil", path))
result = {}
with library.assert_unchanged():
    for path in json.loads(args[0]):
        result[path] = sorted({invariants.catch_refusal(lambda: read(path)).code for read in readers})
"""

CLIMBING = [
    "../../outside/secret.md",
    "references/../../../outside/secret.md",
    "./../x",
    "a/..//../x",
    "..",
    "../",
    "./..",
    "references/..",
    "references/../references/a.md",
    "../good/references/a.md",
    "references/./../../good/SKILL.md",
    "...//..",
    "x/../../evil2",
]
ABSOLUTE = ["/etc/passwd", "~/x", "~root/x", "//x", "///etc/passwd", "file:///etc/passwd", "file:references/a.md", "/"]
FOREIGN = [
    "C:\\x",
    "C:x",
    "\\\\srv\\s\\x",
    "\\\\?\\C:\\x",
    "..\\..\\outside\\secret.md",
    "references\\a.md",
    "a.md:stream",
    "a.md::$DATA",
    "a.md.",
    "a.md ",
    "a.md...",
    "NUL",
    "nul.txt",
    "CON.md",
    "con",
    "COM1",
    "LPT9.txt",
    "aux.tar.gz",
]


def prepare(library: Library) -> None:
    library.write("---\nname: evil\ndescription: d\n---\nBody.\n")
    library.put("evil/references/a.md", "fine\n")


def test_a_path_that_climbs_out_is_refused(library: Library, child: Children, open_method: OpenMethod) -> None:
    """Case 45: every path with ``..`` as a part is refused, even one that would come back."""
    prepare(library)
    outcome = child.answer(READ_ALL, library, json.dumps(CLIMBING), open_method=open_method)
    assert outcome.result == {path: ["path-escape"] for path in CLIMBING}


def test_a_path_that_is_not_relative_is_refused(library: Library, child: Children, open_method: OpenMethod) -> None:
    """Case 46: absolute paths, home folders and URLs are refused, even where they name a file of the skill."""
    prepare(library)
    paths = [*ABSOLUTE, str(library.evil / "references/a.md"), str(library.outside / "secret.md")]
    outcome = child.answer(READ_ALL, library, json.dumps(paths), open_method=open_method)
    assert outcome.result == {path: ["path-escape"] for path in paths}


def test_a_path_that_means_something_else_on_windows_is_refused_everywhere(
    library: Library, child: Children, open_method: OpenMethod
) -> None:
    """Case 47: such paths are refused although files with these names exist."""
    prepare(library)
    for name in FOREIGN:
        library.put(f"evil/{name}", "a file by that very name\n")
    deeper = [f"references/{name}" for name in FOREIGN]
    outcome = child.answer(READ_ALL, library, json.dumps(FOREIGN + deeper), open_method=open_method)
    assert outcome.result == {path: ["path-escape"] for path in FOREIGN + deeper}


OUTWARD = [
    pytest.param(("..", "..", "outside", "secret.md"), id="upward"),
    pytest.param(("references", "..", "..", "..", "outside", "secret.md"), id="down and up"),
    pytest.param(("OUTSIDE/secret.md",), id="absolute"),
]


@pytest.mark.parametrize("parts", OUTWARD)
def test_no_way_of_opening_steps_outward(library: Library, open_method: OpenMethod, parts: tuple[str, ...]) -> None:
    """Cases 45, 46: even without the check of the path, each method of opening stays within the folder."""
    if open_method == "openat2" and best_open_method() != open_method:
        pytest.skip("this kernel has no openat2")
    prepare(library)
    named = tuple(part.replace("OUTSIDE", str(library.outside)) for part in parts)
    with library.assert_unchanged(), pytest.raises((OSError, prowess.SkillError)):
        os.close(open_beneath(str(library.evil), named, way=open_method))


def test_an_ordinary_path_is_read(library: Library, child: Children, open_method: OpenMethod) -> None:
    """Cases 45, 46, 47: paths of an ordinary form are read."""
    prepare(library)
    library.put("evil/references/sub/ä b.md", "fine\n")
    library.put("evil/con-text.md", "fine\n")
    library.put("evil/...x", "fine\n")
    paths = [
        "references/a.md",
        "./references//a.md",
        "references/./a.md",
        "references/sub/ä b.md",
        "con-text.md",
        "...x",
    ]
    outcome = child.answer(
        "result = [library.scan()['evil'].read_resource(path) for path in json.loads(args[0])]",
        library,
        json.dumps(paths),
        open_method=open_method,
    )
    assert outcome.result == ["fine\n"] * len(paths)


def test_the_twin_leaks_the_secret_by_a_path(library: Library, naive: ModuleType) -> None:
    """Twin of cases 45, 46, 47: it joins and opens the path, and reads the secret."""
    prepare(library)
    for path in (
        "../../outside/secret.md",
        "references/../../../outside/secret.md",
        str(library.outside / "secret.md"),
    ):
        assert "TOPSECRET-MARKER" in naive.read(library.evil, path)
    for name in FOREIGN:
        library.put(f"evil/{name}", "read")
        assert naive.read(library.evil, name) == "read"


UNWRITABLE = ["references/a.md\0.txt", "\0", "references\0/a.md", "references/a.md\n", "a\x1bb", "\x7f"]
HALVES = ["\ud800", "references/\udfff.md", "a\ud800b/c"]


@pytest.mark.parametrize("path", UNWRITABLE)
def test_a_control_character_in_a_path_is_refused(library: Library, path: str) -> None:
    """Case 49: NUL would end the path for the system; the error is typed, not a ValueError of the interpreter."""
    prepare(library)
    skill = library.scan()["evil"]
    library.assert_refused(lambda: skill.read_resource(path), "path-escape")
    library.assert_refused(lambda: skill.read_bytes(path), "path-escape")


@pytest.mark.parametrize("path", HALVES)
def test_half_a_character_in_a_path_is_a_typed_error(library: Library, path: str) -> None:
    """Case 49: the error is typed, and not the UnicodeEncodeError of the interpreter."""
    prepare(library)
    skill = library.scan()["evil"]
    library.assert_refused(lambda: skill.read_resource(path))
    library.assert_refused(lambda: skill.read_bytes(path))


@pytest.mark.parametrize("path", ["", "/".join(["a"] * 5_000), "a" * 300, "a/" * 2_000 + "b"])
def test_a_path_that_is_empty_or_too_long_is_a_typed_error(library: Library, path: str) -> None:
    """Case 49: the limits of the system on names do not surface as its own errors."""
    prepare(library)
    skill = library.scan()["evil"]
    error = library.assert_refused(lambda: skill.read_resource(path), "path-escape", "not-found")
    assert len(str(error)) < 10_000


def test_the_twin_fails_on_a_nul_with_a_bare_error(library: Library, naive: ModuleType) -> None:
    """Twin of case 49: it raises the ValueError of the interpreter, which names no path."""
    prepare(library)
    with pytest.raises(ValueError, match="null"):
        naive.read(library.evil, "references/a.md\0.txt")
