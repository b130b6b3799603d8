"""Of N skills of which k are broken, N - k are listed and k issues are reported: a bad one never hides a good one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prowess import scan

if TYPE_CHECKING:
    from collections.abc import Callable


def fenced(rows: str, body: str = "body\n") -> bytes:
    return f"---\n{rows}---\n{body}".encode("utf-8", "surrogatepass")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def link(path: Path) -> None:
    (path.parent / "real.md").write_bytes(fenced(f"name: {path.parent.name}\ndescription: d\n"))
    path.symlink_to("real.md")


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def huge(path: Path) -> None:
    path.write_bytes(b"---\nname: huge\n")
    os.truncate(path, 5 << 30)


BROKEN: dict[str, bytes | Callable[[Path], None]] = {
    "empty": b"",
    "no frontmatter": b"# Title\n",
    "unterminated": b"---\nname: NAME\ndescription: d\n",
    "nothing between": b"---\n---\n",
    "only a comment": fenced("# c\n"),
    "no description": fenced("name: NAME\n", "# Title\n"),
    "blank description": fenced("name: NAME\ndescription: ' '\n", "```\ncode\n```\n"),
    "description of wide blanks": fenced('name: NAME\ndescription: "\u3000"\n', ""),
    "description is a list": fenced("name: NAME\ndescription: [a, b]\n"),
    "name is a mapping": fenced("name: {a: b}\ndescription: d\n"),
    "name and description wrong": fenced("name: [a]\ndescription: [b]\nlicense: ''\n"),
    "duplicate key": fenced("name: NAME\ndescription: d\ndescription: e\n"),
    "duplicate name": fenced("name: NAME\nx: y\nname: B b\ndescription: d\n"),
    "duplicate in metadata": fenced("name: NAME\ndescription: d\nmetadata:\n  a: b\n  a: c\n"),
    "anchor": fenced("name: NAME\ndescription: &a d\n"),
    "alias bomb": fenced("name: NAME\na: &a [x]\nb: &b [*a, *a]\ndescription: *b\n"),
    "tag": fenced("name: NAME\ndescription: !!str d\n"),
    "merge key": fenced("name: NAME\ndescription: d\n<<: {a: b}\n"),
    "list": fenced("- a\n- b\n"),
    "no key": fenced("[[[\n"),
    "deep": fenced("name: NAME\ndescription: d\nx: " + "[" * 40 + "]" * 40 + "\n"),
    "many": fenced("name: NAME\ndescription: d\nx: [" + "a," * 5000 + "a]\n"),
    "large": fenced("name: NAME\ndescription: d\n" + "".join(f"k{n}: v\n" for n in range(9000))),
    "not utf-8": b"---\nname: NAME\ndescription: \xff\n---\nbody",
    "zero": b"---\nname: NAME\ndescription: a\0b\n---\nbody",
    "zeros": b"\0" * 10_000,
    "escape": b"---\nname: NAME\ndescription: \x1b[2J\n---\nbody",
    "utf-16": "---\nname: NAME\ndescription: d\n---\nbody".encode("utf-16"),
    "half a character": fenced('name: NAME\ndescription: "\\ud800"\n'),
    "blank lines": b"---" + b"\n" * 100_000 + b"x",
    "indented dashes": b" ---\nname: NAME\ndescription: d\n---\n",
    "pipe": pipe,
    "folder": folder,
    "link": link,
    "dangling": dangling,
    "loop": loop,
    "huge": huge,
}
GOOD = [
    "name: NAME\ndescription: d\n",
    "name: NAME\ndescription: >\n  folded\n  text\n",
    "description: 'quoted: text'\nname: NAME\nmetadata:\n  a: b\n",
    "# comment\nname: NAME\ndescription: d # comment\n",
    "name: NAME\ndescription: d\nlong: " + "x" * 6000 + "\n",
]


def write(root: Path, name: str, content: bytes | Callable[[Path], None]) -> Path:
    path = root / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.replace(b"NAME", name.encode()))
    return path


@pytest.mark.needs_links
@given(
    broken=st.lists(st.sampled_from(sorted(BROKEN)), max_size=8),
    good=st.lists(st.sampled_from(GOOD), max_size=6),
    order=st.randoms(use_true_random=False),
)
@example(broken=sorted(BROKEN), good=[GOOD[0]], order=None)
def test_n_skills_of_which_k_are_broken(broken: list[str], good: list[str], order: object) -> None:
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        places = list(range(len(broken) + len(good)))
        if hasattr(order, "shuffle"):
            order.shuffle(places)
        names = [f"s{place:03}" for place in places]
        bad = [write(root, name, BROKEN[kind]) for name, kind in zip(names, broken, strict=False)]
        fine = names[len(broken) :]
        for name, rows in zip(fine, good, strict=True):
            write(root, name, fenced(rows))
        catalog = scan(root)
        assert catalog.names == tuple(sorted(fine))
        assert [issue.path for issue in catalog.issues if issue.code != "no-skills"] == sorted(map(str, bad))
        assert all((issue.severity == "error") == bool(bad) and issue.hint for issue in catalog.issues)
        assert [catalog.load(name).instructions for name in fine] == ["body"] * len(fine)


@pytest.mark.needs_links
def test_many_of_which_one_in_ten_is_broken(tmp_path: Path) -> None:
    kinds = [BROKEN[kind] for kind in sorted(BROKEN)]
    for number in range(500):
        write(tmp_path, f"s{number:03}", kinds[number // 10 % len(kinds)] if number % 10 == 0 else fenced(GOOD[0]))
    catalog = scan(tmp_path)
    assert len(catalog) == 450
    assert len(catalog.issues) == 50
