"""The folders of a hostile case, and the invariants that must hold in every case.

A library holds one good skill and one folder for the case. A secret with a marker lies outside the library. In every
case the good skill stays listed and readable, Prowess never shows the marker, no file is created, changed or deleted,
every failure is a typed error or an issue that names the path and the rule, and no process is left behind.

Both the tests and the child processes that they start import this module.
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
    """Return the text of a valid SKILL.md."""
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}"


class Library:
    """The folder ``library/`` with the good skill in ``good/``, and the folder ``outside/`` with the secret.

    A test writes its hostile skill into ``library/evil/``.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "library"
        self.outside = base / "outside"

    def build(self) -> Library:
        """Write the folders that every case begins with, and return the library."""
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
        """The folder of the hostile skill."""
        return self.root / "evil"

    def put(self, path: str, content: str | bytes) -> Path:
        """Write a file below the library and return its path."""
        where = self.root / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(content.encode() if isinstance(content, str) else content)
        return where

    def write(self, content: str | bytes, folder: str = "evil") -> Path:
        """Write the SKILL.md of the hostile skill and return its path."""
        return self.put(f"{folder}/SKILL.md", content)

    # -- invariants ----------------------------------------------------------------------------------------------

    def scan(self, *more: Path, mode: Mode = "lenient", nested: bool = False, repair: bool = True) -> prowess.Catalog:
        """Return the catalogue of the library and of the folders ``more`` after checking the invariants."""
        with self.assert_unchanged():
            catalog = prowess.scan(self.root, *more, mode=mode, nested=nested, repair=repair)
            self.check(catalog)
        return catalog

    def check(self, catalog: prowess.Catalog) -> None:
        """Assert that the good skill is readable, the secret is not shown, and each issue has a code and a path."""
        assert "good" in catalog.names
        assert catalog.load("good").instructions == "Do good."
        assert catalog.read_resource("good", "references/a.md") == "a good reference\n"
        assert MARKER not in text_of(catalog)
        for issue in catalog.issues:
            assert issue.code, issue
            assert issue.message, issue
            assert issue.path, issue

    def assert_refused(self, call: Callable[[], object], *codes: str) -> prowess.SkillError:
        """Assert that ``call`` raises a typed error and changes no file, and return the error.

        The error has one of ``codes``, if any are given.
        """
        with self.assert_unchanged():
            return catch_refusal(call, *codes)

    def assert_rejected(
        self, *codes: str, folder: str = "evil", mode: Mode | None = None, head: bool = True
    ) -> prowess.Issue:
        """Assert that every function that reads the hostile SKILL.md refuses it, and return the issue of a scan.

        ``mode``: only that mode refuses it; by default both do. ``head``: the frontmatter itself is at fault, so that
        ``parse_frontmatter`` refuses it too; otherwise one of its fields is.
        """
        path = self.root / folder / "SKILL.md"
        modes = MODES if mode is None else (mode,)
        with self.assert_unchanged():
            for each in modes:
                self._assert_file_rejected(path, each, codes)
            if head:
                catch_refusal(lambda: prowess.parse_frontmatter(io.BytesIO(path.read_bytes())), *codes)
            return self._find_rejection(path, codes) if "lenient" in modes else self._assert_invalid(path, codes)

    def _assert_file_rejected(self, path: Path, mode: Mode, codes: tuple[str, ...]) -> None:
        catch_refusal(lambda: prowess.read_metadata(path, mode=mode), *codes)
        catch_refusal(lambda: prowess.parse_skill(path.read_bytes(), path, mode=mode), *codes)
        catch_refusal(lambda: prowess.parse_skill_file(path, mode=mode), *codes, "too-large")
        if mode == "strict":
            error = catch_refusal(lambda: prowess.scan(self.root, mode="strict"), *codes)
            assert error.path == str(path)
        self._assert_invalid(path, codes)

    def _find_rejection(self, path: Path, codes: tuple[str, ...]) -> prowess.Issue:
        catalog = self.scan()
        assert path not in [skill.path for skill in catalog]
        return find_error(catalog.issues, path, *codes)

    def _assert_invalid(self, path: Path, codes: tuple[str, ...]) -> prowess.Issue:
        issues = prowess.validate(path.parent)
        assert MARKER not in "\n".join(map(str, issues))
        return find_error(issues, path, *codes, "too-large")

    @contextmanager
    def assert_unchanged(self) -> Iterator[None]:
        """Assert that the block creates, changes and deletes no file and leaves no process behind."""
        before, running = snapshot(self.base), child_processes()
        yield
        assert snapshot(self.base) == before
        assert child_processes() == running


def catch_refusal(call: Callable[[], object], *codes: str) -> prowess.SkillError:
    """Return the typed error that ``call`` raises.

    Assert that it has one of ``codes``, if any are given, and does not show the secret.
    """
    error = _raised_by(call)
    words = "\n".join((str(error), repr(error), error.message, error.path, error.hint))
    assert MARKER not in words
    assert error.code in codes or not codes, words
    assert error.message, words
    return error


def _raised_by(call: Callable[[], object]) -> prowess.SkillError:
    try:
        returned = call()
    except prowess.SkillError as error:
        return error
    raise AssertionError(f"not refused: {returned!r:.200}")


def find_error(issues: tuple[prowess.Issue, ...], path: Path, *codes: str) -> prowess.Issue:
    """Return the first issue about ``path`` that is an error and has one of ``codes``."""
    about = [issue for issue in issues if issue.path == str(path) and issue.severity == "error"]
    fitting = [issue for issue in about if issue.code in codes]
    assert fitting, f"no {codes} for {path} among {[str(issue) for issue in issues]}"
    return fitting[0]


def text_of(catalog: prowess.Catalog) -> str:
    """Return all text that a catalogue gives about its skills without reading their bodies."""
    words = [prowess.render_catalog(catalog, style=style) for style in STYLES]
    words += [f"{issue} {issue.hint}" for issue in catalog.issues]
    words += [f"{skill!r} {skill.to_dict()} {skill.to_xml()} {catalog.explain(skill.name)}" for skill in catalog]
    words += [repr(catalog), repr(catalog.shadowed)]
    return "\n".join(words)


def snapshot(base: Path) -> dict[str, object]:
    """Return the mode, size, times and link target of everything below ``base``, and the content of small files."""
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


def child_processes() -> frozenset[str]:
    """Return the ids of the running children of this process, or nothing where the system has no ``/proc``."""
    pids: set[str] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            pids.update(task.read_text(encoding="ascii").split())
    return frozenset(pids)
