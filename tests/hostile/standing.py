"""The layout of a hostile case and what must hold in every one of them, in the test process and in its children.

A library holds one good skill and one folder for the case; a secret with a marker lies outside. Whatever the case,
the good skill stays listed and readable, the marker appears in nothing that the engine says, no file is created,
changed or deleted, every failure is a typed error or an issue that names the path and the rule, and no process is
left behind.
"""

from __future__ import annotations

import io
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import prowess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Style = Literal["xml", "markdown", "text", "json"]
    Mode = Literal["strict", "lenient"]

MARKER = "TOPSECRET-MARKER"
STYLES: tuple[Style, ...] = ("xml", "markdown", "text", "json")
MODES: tuple[Mode, ...] = ("strict", "lenient")

_KEPT = 64 * 1024  # larger files are compared by size and times only
_MOST = 5_000  # entries in a snapshot: enough for every case that is not about sheer numbers


def skill_text(name: str, description: str = "Does what it says.", body: str = "Do it.\n") -> str:
    """A SKILL.md that nothing is wrong with."""
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}"


class Library:
    """``library/`` with ``good/`` and room for ``evil/``; ``outside/`` with the secret."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "library"
        self.outside = base / "outside"

    def build(self) -> Library:
        """Write the folders that every case begins with."""
        self.put("good/SKILL.md", skill_text("good", body="Do good.\n"))
        self.put("good/references/a.md", "a good reference\n")
        for name in ("secret.md", "sub/s.md"):
            path = self.outside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{MARKER}\n", encoding="utf-8")
        (self.outside / "SKILL.md").write_text(skill_text("evil", MARKER, MARKER), encoding="utf-8")
        return self

    @property
    def evil(self) -> Path:
        """The folder of the case."""
        return self.root / "evil"

    def put(self, path: str, content: str | bytes) -> Path:
        """Write a file below the library."""
        where = self.root / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(content.encode() if isinstance(content, str) else content)
        return where

    def write(self, content: str | bytes, folder: str = "evil") -> Path:
        """Write the SKILL.md of the case."""
        return self.put(f"{folder}/SKILL.md", content)

    # -- what must hold ------------------------------------------------------------------------------------------

    def scan(self, *more: Path, mode: Mode = "lenient", nested: bool = False, repair: bool = True) -> prowess.Catalog:
        """The catalogue of the library (and of ``more``), after the standing assertions."""
        with self.unchanged():
            catalog = prowess.scan(self.root, *more, mode=mode, nested=nested, repair=repair)
            self.check(catalog)
        return catalog

    def check(self, catalog: prowess.Catalog) -> None:
        """The good skill is listed and readable; the secret is nowhere; every issue says where and which rule."""
        assert "good" in catalog.names
        assert catalog.load("good").instructions == "Do good."
        assert catalog.read_resource("good", "references/a.md") == "a good reference\n"
        assert MARKER not in said(catalog)
        for issue in catalog.issues:
            assert issue.code, issue
            assert issue.message, issue
            assert issue.path, issue

    def refused(self, call: Callable[[], object], *codes: str) -> prowess.SkillError:
        """The typed error with which ``call`` fails; nothing changes."""
        with self.unchanged():
            return refusal(call, *codes)

    def rejected(self, *codes: str, folder: str = "evil", mode: Mode | None = None, head: bool = True) -> prowess.Issue:
        """The issue with which the SKILL.md of the case is left out, whichever way it is asked for.

        ``mode``: only that mode rejects it. ``head``: the frontmatter itself is at fault, not one of its fields.
        """
        path = self.root / folder / "SKILL.md"
        modes = MODES if mode is None else (mode,)
        with self.unchanged():
            for each in modes:
                self._rejected_as_file(path, each, codes)
            if head:
                refusal(lambda: prowess.parse_frontmatter(io.BytesIO(path.read_bytes())), *codes)
            return self._rejected_in_catalog(path, codes) if "lenient" in modes else self._validated(path, codes)

    def _rejected_as_file(self, path: Path, mode: Mode, codes: tuple[str, ...]) -> None:
        refusal(lambda: prowess.read_metadata(path, mode=mode), *codes)
        refusal(lambda: prowess.parse_skill(path.read_bytes(), path, mode=mode), *codes)
        refusal(lambda: prowess.parse_skill_file(path, mode=mode), *codes, "too-large")
        if mode == "strict":
            error = refusal(lambda: prowess.scan(self.root, mode="strict"), *codes)
            assert error.path == str(path)
        self._validated(path, codes)

    def _rejected_in_catalog(self, path: Path, codes: tuple[str, ...]) -> prowess.Issue:
        catalog = self.scan()
        assert path not in [skill.path for skill in catalog]
        return found(catalog.issues, path, *codes)

    def _validated(self, path: Path, codes: tuple[str, ...]) -> prowess.Issue:
        issues = prowess.validate(path.parent)
        assert MARKER not in "\n".join(map(str, issues))
        return found(issues, path, *codes, "too-large")

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Nothing in the library or outside it is created, changed or deleted, and no process is left."""
        before, running = snapshot(self.base), children()
        yield
        assert snapshot(self.base) == before
        assert children() == running


def refusal(call: Callable[[], object], *codes: str) -> prowess.SkillError:
    """The typed error with which ``call`` fails: with one of ``codes`` if any are given, and without the secret."""
    error = _raised_by(call)
    words = "\n".join((str(error), repr(error), error.message, error.path, error.hint))
    assert MARKER not in words
    assert error.code in codes or not codes, words
    assert error.message, words
    return error


def _raised_by(call: Callable[[], object]) -> prowess.SkillError:
    try:
        given = call()
    except prowess.SkillError as error:
        return error
    raise AssertionError(f"not refused: {given!r:.200}")


def found(issues: tuple[prowess.Issue, ...], path: Path, *codes: str) -> prowess.Issue:
    """The error about ``path`` with one of ``codes``."""
    about = [issue for issue in issues if issue.path == str(path) and issue.severity == "error"]
    fitting = [issue for issue in about if issue.code in codes]
    assert fitting, f"no {codes} for {path} among {[str(issue) for issue in issues]}"
    return fitting[0]


def said(catalog: prowess.Catalog) -> str:
    """Everything that a catalogue tells of its skills without reading their bodies."""
    words = [prowess.render_catalog(catalog, style=style) for style in STYLES]
    words += [f"{issue} {issue.hint}" for issue in catalog.issues]
    words += [f"{skill!r} {skill.to_dict()} {skill.to_xml()} {catalog.explain(skill.name)}" for skill in catalog]
    words += [repr(catalog), repr(catalog.shadowed)]
    return "\n".join(words)


def snapshot(base: Path) -> dict[str, object]:
    """What lies below ``base``: kinds, modes, sizes, times, links, and the content of small files."""
    seen: dict[str, object] = {}
    waiting = [str(base)]
    while waiting and len(seen) < _MOST:
        path = waiting.pop()
        try:
            info = os.lstat(path)
        except OSError:  # a path longer than the system allows
            continue
        seen[path] = (info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, _content(path, info))
        if stat.S_ISDIR(info.st_mode):
            waiting += _entries(path)
    return seen


def _entries(path: str) -> list[str]:
    try:
        return sorted((os.path.join(path, name) for name in os.listdir(path)), reverse=True)  # noqa: PTH118, PTH208
    except OSError:
        return []


def _content(path: str, info: os.stat_result) -> bytes | str:
    if stat.S_ISLNK(info.st_mode):
        return os.readlink(path)  # noqa: PTH115
    if not stat.S_ISREG(info.st_mode) or info.st_size > _KEPT:
        return b""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def children() -> frozenset[str]:
    """The processes that this one has started and that are still there; none where the system does not say."""
    found: set[str] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found.update(task.read_text(encoding="ascii").split())
    return frozenset(found)
