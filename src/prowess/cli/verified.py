"""Whether installed skills are what their lock files say, for commands that show or use them. Nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.cli import output
from prowess.cli.remedies import remedy
from prowess.errors import InstallError
from prowess.files.paths import inner_path
from prowess.library.places import config_home, project_folders
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    import prowess
    from prowess.library.installs import Scope
    from prowess.library.lock import Locked

LOCK_FILE = "prowess.lock"
_JOURNAL = ".prowess.journal"
CHANGED = "changed since installed"


class Verified:
    """The lock files around the working folder and of the user, read once; only what they name is hashed."""

    def __init__(self) -> None:
        home = os.path.expanduser("~")
        own = os.path.join(config_home(home, os.environ), "prowess")
        self._scopes: list[tuple[Scope, Locked]] = []
        self._known: dict[tuple[str, str], list[str] | None] = {}
        """The paths that differ in each install; ``None`` for one that is not in the lock file."""
        self.troubles: list[InstallError] = []
        """What keeps a lock file from being read."""
        self.waiting: list[prowess.Issue] = []
        """Changes that were interrupted."""
        folders = (*project_folders(os.getcwd(), home), own)
        if any(os.path.lexists(os.path.join(folder, name)) for folder in folders for name in (LOCK_FILE, _JOURNAL)):
            self._read(home)

    def _read(self, home: str) -> None:
        from prowess.library.installs import standard_scopes  # noqa: PLC0415 - only where there is a lock file
        from prowess.library.journal import find_interrupted  # noqa: PLC0415
        from prowess.library.lock import read_lock  # noqa: PLC0415

        for scope in standard_scopes(os.getcwd(), home, os.environ):
            self.waiting += find_interrupted(scope, DEFAULT_LIMITS)
            try:
                self._scopes.append((scope, read_lock(scope.records)))
            except InstallError as error:
                self.troubles.append(error)

    def state(self, skill: prowess.Skill) -> str:
        """``verified``, ``changed since installed``, ``not in the lock file``; ``""`` for what is not installed."""
        from prowess.library.pins import find_link_inside  # noqa: PLC0415 - only where there is a lock file

        real = os.path.realpath(skill.folder) if self._scopes and skill.is_local else ""
        for scope, locked in self._scopes:
            base = os.path.realpath(scope.base)
            if real and find_link_inside(skill, base) is not None:
                return CHANGED
            inside = inner_path(real, base)
            if inside is not None:
                parts = inside.split(os.sep)
                changed = self._changed(scope, locked, "/".join(parts[:2]))
                if changed is None:
                    return "not in the lock file"
                own = "".join(f"{part}/" for part in parts[2:])
                return CHANGED if any(not path or path.startswith(own) for path in changed) else "verified"
        return ""

    def source(self, skill: prowess.Skill) -> str:
        """From where a skill was installed, at which version or commit; ``""`` for what is not installed."""
        real = os.path.realpath(skill.folder) if self._scopes and skill.is_local else ""
        for scope, locked in self._scopes:
            inside = inner_path(real, os.path.realpath(scope.base))
            if inside:
                entry = locked.get("/".join(inside.split(os.sep)[:2]))
                version = (entry.ref or entry.commit[:12]) if entry is not None else ""
                return "" if entry is None else f"{entry.source}{f' at {version}' if version else ''}"
        return ""

    def absent(self, location: str) -> list[str]:
        """The skills that lock files of the ``"project"`` or the ``"user"`` record, and that are not here."""
        return [
            skill
            for scope, locked in self._scopes
            for name, entry in locked.items()
            if scope.location == location and not os.path.lexists(scope.place(name))
            for skill in entry.skills
        ]

    def _changed(self, scope: Scope, locked: Locked, name: str) -> list[str] | None:
        if (scope.base, name) not in self._known:
            self._known[scope.base, name] = _changed(scope, locked, name)
        return self._known[scope.base, name]


def _changed(scope: Scope, locked: Locked, name: str) -> list[str] | None:
    from prowess.install.entries import differences  # noqa: PLC0415 - only where there is a lock file

    entry = locked.get(name)
    return None if entry is None else [path for _, path in differences(entry, scope.place(name), DEFAULT_LIMITS)]


def tell_changed(skills: Iterable[prowess.Skill]) -> None:
    """Warn of each skill that somebody changed after it was installed, and is used all the same.

    Changes that were interrupted are told as well.
    """
    verified = Verified()
    for issue in verified.waiting:
        output.warn(f"[{issue.code}] {issue.path}: {issue.message}")
    for trouble in verified.troubles:
        output.warn(f"[{trouble.code}] {trouble.message}; whether installed skills have changed is not known")
        if trouble.code == "lock-conflict":
            output.note(f"  hint: {remedy(trouble.code)}")
    for skill in skills:
        if verified.state(skill) == CHANGED:
            output.warn(
                f"[changed-since-locked] {skill.name} is not what {LOCK_FILE} says ('prowess verify' names the files, "
                "'prowess sync' restores them, --verify refuses it)"
            )


def absence(name: str = "", *, project: bool = True) -> str:
    """What to do about skills that a lock file records and that are not here, or about that one; else ``""``."""
    verified = Verified()
    for location, command in (("project", "prowess sync --locked"), ("user", "prowess sync --locked --user")):
        names = verified.absent(location) if project or location == "user" else []
        if names and (not name or name in names):
            what = "1 skill that is" if len(names) == 1 else f"{len(names)} skills that are"
            return f"{LOCK_FILE} records {what} not here: {command}"
    return ""


def as_locked(catalog: prowess.Catalog) -> prowess.Catalog:
    """The catalogue without the installed skills that are not what their lock files say."""
    from prowess.library.catalog import Catalog  # noqa: PLC0415 - only for those who ask
    from prowess.library.installs import standard_scopes  # noqa: PLC0415
    from prowess.library.pins import Pins  # noqa: PLC0415

    scopes = standard_scopes(os.getcwd(), os.path.expanduser("~"), os.environ)
    kept, refused = Pins(scopes, DEFAULT_LIMITS).sift(list(catalog.skills))
    return Catalog(kept, issues=[*catalog.failures, *refused], places=catalog.places)
