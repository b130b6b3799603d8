"""Whether installed skills are what their lock files say, for commands that show it. Nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import InstallError
from prowess.library.places import config_home, project_folders
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    import prowess
    from prowess.library.installs import Scope
    from prowess.library.lock import Locked

LOCK_FILE = "prowess.lock"


class Verified:
    """The lock files around the working folder and of the user, read once; only what they name is hashed."""

    def __init__(self) -> None:
        home = os.path.expanduser("~")
        own = os.path.join(config_home(home, os.environ), "prowess")
        self._scopes: list[tuple[Scope, Locked]] = []
        self._known: dict[str, str] = {}
        if any(
            os.path.lexists(os.path.join(folder, LOCK_FILE)) for folder in (*project_folders(os.getcwd(), home), own)
        ):
            self._read(home)

    def _read(self, home: str) -> None:
        from prowess.library.installs import standard_scopes  # noqa: PLC0415 - only where there is a lock file
        from prowess.library.lock import read_lock  # noqa: PLC0415

        for scope in standard_scopes(os.getcwd(), home, os.environ):
            try:
                self._scopes.append((scope, read_lock(scope.records)))
            except InstallError:  # 'prowess verify' and 'prowess doctor' tell it
                continue

    def state(self, skill: prowess.Skill) -> str:
        """``verified``, ``changed since installed``, ``not in the lock file``; ``""`` for what is not installed."""
        real = os.path.realpath(skill.folder) if self._scopes and skill.is_local else ""
        for scope, locked in self._scopes:
            base = os.path.realpath(scope.base) + os.sep
            if real.startswith(base):
                name = "/".join(real[len(base) :].split(os.sep)[:2])
                return self._known.setdefault(name, _compared(scope, locked, name))
        return ""


def _compared(scope: Scope, locked: Locked, name: str) -> str:
    from prowess.install.entries import differences  # noqa: PLC0415 - only where there is a lock file

    entry = locked.get(name)
    if entry is None:
        return "not in the lock file"
    return "changed since installed" if differences(entry, scope.place(name), DEFAULT_LIMITS) else "verified"
