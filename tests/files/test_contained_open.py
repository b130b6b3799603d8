"""Opening below a folder equals a model of it: every way, every tree, every path."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prowess import Frontmatter, PathTraversalError, ResourceError, ResourceNotFoundError, Skill
from prowess.files.contained_open import best_open_method, open_beneath
from prowess.files.read import OpenFile
from prowess.literals import OpenMethod

SECRET = b"TOPSECRET"
WAYS: tuple[OpenMethod, ...] = get_args(OpenMethod)


def usable(way: OpenMethod) -> bool:
    order: tuple[OpenMethod, ...] = ("portable", "components", "openat2")
    return order.index(way) <= order.index(best_open_method())


EVERY_WAY = [pytest.param(way, marks=pytest.mark.skipif(not usable(way), reason="not on this system")) for way in WAYS]

# -- the model ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Link:
    target: str


@dataclass(frozen=True)
class Pipe:
    pass


Node = bytes | Link | Pipe | dict[str, "Node"]
Answer = bytes | Literal["escape", "missing", "special"]

NAMES = ["a", "b", "c", "é"]
TARGETS = [
    *(
        ".",
        "..",
        "a",
        "b",
        "./a",
        "../b",
        "a/b",
        "../skill/a",
        "../outside",
        "../outside/secret",
        "OUTSIDE",
        "OUTSIDE/secret",
    ),
    *("nowhere", "/", "/dev/null", "/dev/zero", "/proc/self/environ", "/proc/self/root", "c"),
]
LEAVES = st.binary(max_size=5) | st.sampled_from(TARGETS).map(Link) | st.just(Pipe())
TREES = st.dictionaries(
    st.sampled_from(NAMES),
    st.recursive(LEAVES, lambda inner: st.dictionaries(st.sampled_from(NAMES), inner, max_size=3), max_leaves=6),
    max_size=4,
)
PARTS = st.lists(st.sampled_from([*NAMES, "d"]), min_size=1, max_size=4).map(tuple)


def resolve(tree: dict[str, Node], parts: tuple[str, ...]) -> Answer:
    """What a reader that follows no link and leaves no folder gets: the oracle."""
    node: Node = tree
    for part in parts:
        if isinstance(node, Link):
            return "escape"
        if not isinstance(node, dict) or part not in node:
            return "missing"
        node = node[part]
    if isinstance(node, Link):
        return "escape"
    return node if isinstance(node, bytes) else "special"


def resolve_text(tree: dict[str, Node], path: str) -> Answer:
    """The same for a path as a caller writes it."""
    if not path or path.startswith(("/", "~")) or set(path) & set("\\:\0\n"):
        return "escape"
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    if not parts or ".." in parts or any(part.endswith((".", " ")) for part in parts):
        return "escape"
    if path.rpartition("/")[2] in {"", "."}:  # it can only name a folder
        return "special"
    return resolve(tree, parts)


# -- the real thing ----------------------------------------------------------------------------------------------------


def build(folder: Path, tree: dict[str, Node], outside: Path) -> None:
    folder.mkdir()
    for name, node in tree.items():
        if isinstance(node, dict):
            build(folder / name, node, outside)
        elif isinstance(node, Link):
            (folder / name).symlink_to(node.target.replace("OUTSIDE", str(outside)))
        elif isinstance(node, Pipe):
            os.mkfifo(folder / name)
        else:
            (folder / name).write_bytes(node)


def answer_of(error: ResourceError) -> Answer:
    if isinstance(error, PathTraversalError):
        return "escape"
    if isinstance(error, ResourceNotFoundError):
        return "missing"
    assert error.code == "not-a-regular-file"
    return "special"


def opened(base: Path, parts: tuple[str, ...], way: OpenMethod) -> Answer:
    try:
        with OpenFile(str(base), parts, way=way) as file:
            return file.read_all(1000)
    except ResourceError as error:
        return answer_of(error)


@pytest.mark.needs_links
@pytest.mark.needs_fifo
@pytest.mark.parametrize("way", EVERY_WAY)
@given(tree=TREES, requests=st.lists(PARTS, min_size=1, max_size=6))
@example(
    tree={"a": Link("../outside"), "b": {"c": Link("OUTSIDE/secret")}}, requests=[("a", "secret"), ("b", "c"), ("a",)]
)
@example(tree={"a": {"b": Link("."), "c": b"x"}}, requests=[("a", "b", "c"), ("a", "c"), ("a", "c", "d")])
@example(
    tree={"a": Link("a"), "b": Pipe(), "c": Link("nowhere")}, requests=[("a",), ("b",), ("c",), ("b", "a"), ("c", "a")]
)
def test_contained_opening_equals_the_model(
    way: OpenMethod, tree: dict[str, Node], requests: list[tuple[str, ...]]
) -> None:
    with tempfile.TemporaryDirectory() as made:
        outside = Path(made, "outside")
        build(outside, {"secret": SECRET, "a": SECRET, "b": SECRET, "c": SECRET}, outside)
        build(Path(made, "skill"), tree, outside)
        for parts in requests:
            assert opened(Path(made, "skill"), parts, way) == resolve(tree, parts), parts


PATHS = st.lists(st.sampled_from([*NAMES, "d", "..", ".", "", "a.", "b ", "~"]), min_size=1, max_size=5).flatmap(
    lambda parts: st.sampled_from(["/", "//", "/./", "\\"]).map(lambda joint: joint.join(parts))
)


@pytest.mark.needs_links
@pytest.mark.needs_fifo
@given(tree=TREES, paths=st.lists(PATHS, min_size=1, max_size=6), deep=st.booleans())
@example(
    tree={"a": {"b": b"x"}},
    paths=["a/b", "./a/b", "a//b", "a/./b", "a/../a/b", "/a/b", "a/b/", ".", "", "a/b/.."],
    deep=False,
)
def test_reading_a_resource_equals_the_model(tree: dict[str, Node], paths: list[str], deep: bool) -> None:
    with tempfile.TemporaryDirectory() as made:
        outside = Path(made, "outside")
        build(outside, {"secret": SECRET, "a": SECRET}, outside)
        build(Path(made, "skill"), {"sub": tree} if deep else tree, outside)
        folder = Path(made, "skill", "sub") if deep else Path(made, "skill")
        skill = Skill(Frontmatter("s", "d"), folder / "SKILL.md")
        for path in paths:
            try:
                found: Answer = skill.read_bytes(path)
            except ResourceError as error:
                found = answer_of(error)
            assert found == resolve_text(tree, path), path


# -- single points -----------------------------------------------------------------------------------------------------


@pytest.mark.needs_links
@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_link_is_refused_with_eloop_wherever_it_stands(way: OpenMethod, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_bytes(b"x")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real" / "l").symlink_to("f")
    for parts in (("folder", "f"), ("real", "l"), ("folder", "l")):
        with pytest.raises(OSError, match=os.strerror(errno.ELOOP)) as caught:
            open_beneath(str(tmp_path), parts, way=way)
        assert caught.value.errno == errno.ELOOP


@pytest.mark.needs_links
@pytest.mark.parametrize("way", EVERY_WAY)
def test_the_base_itself_may_be_reached_through_a_link(way: OpenMethod, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_bytes(b"x")
    (tmp_path / "base").symlink_to("real")
    assert opened(tmp_path / "base", ("f",), way) == b"x"


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("parts", [("..", "secret"), ("a", "..", "..", "secret"), ("..",), ("../secret",)])
def test_parts_that_lead_out_of_the_folder_open_nothing(
    way: OpenMethod, parts: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "skill" / "a").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(SECRET)
    assert opened(tmp_path / "skill", parts, way) == "escape"


@pytest.mark.needs_links
@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("parts", [("f",), ("nothing",), ("l",), ("sub", "nothing"), ("f", "x"), ("sub",)])
def test_no_descriptor_is_left_open(way: OpenMethod, parts: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "l").symlink_to("f")
    (tmp_path / "sub").mkdir()
    opened(tmp_path, parts, way)
    before = lowest_free()
    for _ in range(5):
        opened(tmp_path, parts, way)
    assert lowest_free() == before


def lowest_free() -> int:
    fd = os.dup(0)
    os.close(fd)
    return fd


@pytest.mark.needs_posix
@pytest.mark.parametrize("way", EVERY_WAY)
def test_descriptors_are_not_inherited_and_do_not_block(way: OpenMethod, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    fd = open_beneath(str(tmp_path), ("f",), way=way)
    try:
        assert not os.get_inheritable(fd)
        assert not os.get_blocking(fd)
        assert stat.S_ISREG(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


def test_the_best_way_is_one_that_works(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    assert best_open_method() in WAYS
    assert opened(tmp_path, ("f",), best_open_method()) == b"x"
