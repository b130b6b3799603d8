"""An installer under attack, and the invariants that must hold whatever the attack is.

The good skill stays installed and unchanged, and discovery finds it. Nothing outside the installer's own folders is
created, changed or deleted. The secret is in no file and in no message. Every failure is a typed error. No process is
left behind.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import prowess
from tests.hostile import invariants
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.hostile.invariants import Library


class InstallerCase:
    """An installer with one good skill in place, its folders, and repositories that a test makes for its case."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.base = library.base
        self.project = self.base / "installed" / "project"
        self.installer = self.make()
        self.good = self.installer.install_local(library.root / "good", project=True)

    def make(self, **options: object) -> prowess.Installer:
        """Return a new installer with these options for the folders of this case."""
        folders = {"user_dir": self.base / "installed" / "user", "project_dir": self.project / ".prowess" / "skills"}
        return prowess.Installer(**folders, **options)  # type: ignore[arg-type]

    def repository(self, name: str = "evil", *, skill: bool = True) -> Repository:
        """Return a new repository. It has one skill at its root unless ``skill`` is false."""
        made = Repository(self.base / "repositories" / name)
        if skill:
            made.skill("", name)
            made.commit()
        return made

    def assert_refused(self, call: Callable[[], object], *codes: str) -> prowess.SkillError:
        """Assert that ``call`` raises a typed error and leaves every installed file as it was, and return the error."""
        before = self._installed()
        with self.assert_unharmed():
            error: prowess.SkillError = invariants.catch_refusal(call, *codes)
        assert self._installed() == before
        return error

    def assert_install_refused(
        self, given: str | prowess.SkillRef | prowess.SourceSpec, *codes: str
    ) -> prowess.SkillError:
        """Assert that an install for the project raises a typed error, and return the error."""
        return self.assert_refused(lambda: self.installer.install(given, project=True), *codes)

    @contextmanager
    def assert_unharmed(self) -> Iterator[None]:
        """Assert that the invariants hold after the block, whether Prowess refused the attack or not."""
        outside = {path: invariants.snapshot(path) for path in (self.library.root, self.library.outside)}
        running = invariants.child_processes()
        yield
        for path, before in outside.items():
            assert invariants.snapshot(path) == before
        assert invariants.child_processes() == running
        assert self.files_with_secret() == []
        assert self.installer.verify() == ()
        catalog = prowess.discover(cwd=self.project, home=self.base / "nobody", verify="lock")
        assert catalog.load("good").instructions == "Do good."
        assert list(self.base.rglob("pwned*")) == []

    def files_with_secret(self) -> list[Path]:
        """Return the files below the installer's folders that hold the secret."""
        written = (path for path in (self.base / "installed").rglob("*") if path.is_file() and not path.is_symlink())
        return [path for path in written if invariants.MARKER.encode() in path.read_bytes()]

    def _installed(self) -> dict[str, bytes | str]:
        """Return every installed file with its bytes, and every link with its target.

        Empty folders are left out, and so is the store, where deleted files may wait for their removal.
        """
        folder = self.base / "installed"
        paths = (path for path in folder.rglob("*") if ".store" not in path.parts)
        named = {path.relative_to(folder).as_posix(): path for path in paths if path.is_symlink() or path.is_file()}
        return {name: str(path.readlink()) if path.is_symlink() else path.read_bytes() for name, path in named.items()}
