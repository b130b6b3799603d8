"""An installer under attack, and what must hold whatever the attack is.

The good skill stays installed, found and unchanged; nothing outside the installer's own folders is created, changed or
deleted; the secret is in no file and in no message; every failure is a typed error; no process is left behind.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import prowess
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    from tests.hostile.standing import Library


class Guarded:
    """The installer, its folders, and repositories made for the case."""

    def __init__(self, library: Library, standing: ModuleType) -> None:
        self.library, self.standing = library, standing
        self.base = library.base
        self.project = self.base / "installed" / "project"
        self.installer = self.make()
        self.good = self.installer.install_local(library.root / "good", project=True)

    def make(self, **options: object) -> prowess.Installer:
        """Another installer for the same folders."""
        folders = {"user_dir": self.base / "installed" / "user", "project_dir": self.project / ".prowess" / "skills"}
        return prowess.Installer(**folders, **options)  # type: ignore[arg-type]

    def repository(self, name: str = "evil", *, skill: bool = True) -> Repository:
        """A repository, with one skill on top unless the case brings its own."""
        made = Repository(self.base / "repositories" / name)
        if skill:
            made.skill("", name)
            made.commit()
        return made

    def refused(self, call: Callable[[], object], *codes: str) -> prowess.SkillError:
        """The typed error with which a call fails; everything is as it was."""
        before = self._installed()
        with self.unharmed():
            error: prowess.SkillError = self.standing.refusal(call, *codes)
        assert self._installed() == before
        return error

    def refuses(self, given: str | prowess.SkillRef | prowess.SourceSpec, *codes: str) -> prowess.SkillError:
        """The typed error with which an install for the project fails."""
        return self.refused(lambda: self.installer.install(given, project=True), *codes)

    @contextmanager
    def unharmed(self) -> Iterator[None]:
        """What must hold, whether the call is refused or not."""
        outside = {path: self.standing.snapshot(path) for path in (self.library.root, self.library.outside)}
        running = self.standing.children()
        yield
        for path, before in outside.items():
            assert self.standing.snapshot(path) == before
        assert self.standing.children() == running
        assert self.marked() == []
        assert self.installer.verify() == ()
        catalog = prowess.discover(cwd=self.project, home=self.base / "nobody", verify="lock")
        assert catalog.load("good").instructions == "Do good."
        assert list(self.base.rglob("pwned*")) == []

    def marked(self) -> list[Path]:
        """The files that the installer wrote and that hold the secret."""
        written = (path for path in (self.base / "installed").rglob("*") if path.is_file() and not path.is_symlink())
        return [path for path in written if self.standing.MARKER.encode() in path.read_bytes()]

    def _installed(self) -> dict[str, bytes | str]:
        """Everything but what waits in the store to be deleted, and empty folders."""
        folder = self.base / "installed"
        found = (path for path in folder.rglob("*") if ".store" not in path.parts)
        named = {path.relative_to(folder).as_posix(): path for path in found if path.is_symlink() or path.is_file()}
        return {name: str(path.readlink()) if path.is_symlink() else path.read_bytes() for name, path in named.items()}
