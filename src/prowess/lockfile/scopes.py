"""Where installed skills lie, and which there are. Nothing here changes anything.

A scope has a base (``<base>/<org>/<name>``), a root below which agents look, and a lock file. The project's base is
``.prowess/skills`` in its folder, which is then the root and holds ``prowess.lock``; the user's is ``prowess/skills``
in the configuration folder, the home folder is the root, and the lock file lies beside ``skills``. With a base of any
other shape everything stays inside it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.errors import InstallError, NotInstalledError
from prowess.files.directory import Folder, folder_info
from prowess.files.paths import is_real_folder, is_really_inside
from prowess.files.projects import NATIVE_PROJECT, config_home, project_folders, project_root
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import read_lock
from prowess.spec.skill_ref import SkillRef, is_safe_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prowess.lockfile.read import LockedSkill

Location = Literal["project", "user"]
STORE = ".store"
"""The folder in a base where trees wait for their place, and where replaced ones go."""
_USER_TAIL = ("prowess", "skills")
_CONFIG = ".config"


@dataclass(frozen=True, slots=True)
class InstalledSkill:
    """An install: whose, which, for the ``"project"`` or the ``"user"``, and where."""

    org: str
    name: str
    location: Location
    path: Path

    @property
    def full_name(self) -> str:
        """``org/name``."""
        return f"{self.org}/{self.name}"


class Scope(NamedTuple):
    """The folders that one lock covers together."""

    location: Location
    base: str
    root: str
    """Below it agents look for skills."""
    records: str
    """The folder with the lock file and the manifest."""

    def place(self, full_name: str) -> str:
        """The folder of an install."""
        return os.path.join(self.base, *full_name.split("/"))


def default_user_dir() -> Path:
    """``$XDG_CONFIG_HOME/prowess/skills``, else ``~/.config/prowess/skills``, on every platform."""
    return Path(config_home(os.path.expanduser("~"), os.environ), *_USER_TAIL)


def default_project_dir() -> Path:
    """``.prowess/skills`` in the working folder."""
    return Path(os.getcwd(), *NATIVE_PROJECT.split("/"))


def project_scope(base: str | os.PathLike[str] | None = None) -> Scope:
    """The project's scope: that of the project around the working folder, unless a base is given."""
    where = os.path.abspath(os.fspath(base) if base is not None else _project_base())
    head = where.removesuffix(os.sep + NATIVE_PROJECT.replace("/", os.sep))
    return Scope("project", where, head, head)


def _project_base() -> str:
    root = project_root(os.getcwd(), os.path.expanduser("~"))
    return os.path.join(root, *NATIVE_PROJECT.split("/"))


def user_scope(base: str | os.PathLike[str] | None = None) -> Scope:
    """The user's scope."""
    usual = os.fspath(default_user_dir())
    where = os.path.abspath(os.fspath(base) if base is not None else usual)
    above = where.removesuffix(os.sep + "skills")
    config = above.removesuffix(os.sep + "prowess")
    if where == usual:
        return Scope("user", where, os.path.expanduser("~"), above)
    if where == os.path.join(config, *_USER_TAIL) and os.path.basename(config) == _CONFIG:
        return Scope("user", where, os.path.dirname(config), above)
    return Scope("user", where, where, where)


def standard_scopes(cwd: str, home: str, env: Mapping[str, str], *, project: bool = True) -> tuple[Scope, ...]:
    """The scopes whose skills ``discover`` finds: those of the project's folders, the nearest first, and the user's."""
    config = config_home(home, env)
    user = Scope("user", os.path.join(config, *_USER_TAIL), home, os.path.join(config, _USER_TAIL[0]))
    folders = project_folders(cwd, home) if project else ()
    return (*(project_scope(os.path.join(folder, *NATIVE_PROJECT.split("/"))) for folder in folders), user)


def resolve(ref: SkillRef | str, scopes: tuple[Scope, ...]) -> tuple[Scope, str]:
    """The first scope that has the skill, and its folder there; the version does not matter."""
    wanted = ref if isinstance(ref, SkillRef) else SkillRef.parse(ref)
    SkillRef.parse(str(wanted))  # one that a program put together is checked as well
    for scope in scopes:
        place = scope.place(wanted.full_name)
        if folder_info(place) is not None:
            return scope, place
        copies = copied_folders(_entry(scope, wanted.full_name), scope)
        if copies:
            return scope, copies[0]
    raise NotInstalledError(f"skill {wanted.full_name} is not installed")


def _entry(scope: Scope, full_name: str) -> LockedSkill | None:
    """What the lock file says of an install; nothing where it cannot be read, which whoever needs it says."""
    with suppress(InstallError):
        return read_lock(scope.records).get(full_name)
    return None


def copied_folders(entry: LockedSkill | None, scope: Scope) -> list[str]:
    """The folders that are an install of mode copy, one for each skill that is here: the first copy of it.

    A project's lock file may be somebody else's: a copy that it records outside of the project does not count.
    """
    folders: dict[str, str] = {}
    for recorded in entry.copies if entry is not None and entry.is_copied else ():
        path = os.path.normpath(os.path.join(scope.root, recorded))
        if is_real_folder(path) and (scope.location == "user" or is_really_inside(path, scope.root)):
            folders.setdefault(os.path.basename(path), path)
    return list(folders.values())


def place_of(entry: LockedSkill | None, scope: Scope, full_name: str) -> str:
    """Where an install is, or will be: its folder in the base, or the first of its copies where these are it."""
    if entry is None or not entry.is_copied:
        return scope.place(full_name)
    return os.path.normpath(os.path.join(scope.root, next(iter(entry.copies), "")))


def is_here(entry: LockedSkill, scope: Scope) -> bool:
    """True when an install is on this disk: its folder in the base, or a copy of each of its skills."""
    if entry.is_copied:
        return len(copied_folders(entry, scope)) == len({os.path.basename(copy) for copy in entry.copies})
    return os.path.lexists(scope.place(entry.name))


def copied_installs(scope: Scope, locked: Mapping[str, LockedSkill]) -> Iterator[InstalledSkill]:
    """Every install of mode copy that is here, by name; its path is that of its first copy."""
    for full_name in sorted(locked):
        folders = copied_folders(locked[full_name], scope)
        if folders:
            org, _, name = full_name.partition("/")
            yield InstalledSkill(org, name, scope.location, Path(folders[0]))


def installed(scope: Scope) -> Iterator[InstalledSkill]:
    """Every folder two levels below the base, by name; links and hidden names do not count."""
    for org, name in _installed_names(scope):
        yield InstalledSkill(org, name, scope.location, Path(scope.base, org, name))


def installed_names(scope: Scope) -> list[str]:
    """The ``org/name`` of everything installed, by name. Path objects cost more than finding what is there."""
    return [f"{org}/{name}" for org, name in _installed_names(scope)]


def _installed_names(scope: Scope) -> Iterator[tuple[str, str]]:
    for org in _folders(scope.base):
        for name in _folders(os.path.join(scope.base, org)):
            yield org, name


def _folders(path: str) -> list[str]:
    try:
        with Folder(path) as folder:
            entries = folder.entries(DEFAULT_LIMITS.max_entries_per_folder)
    except OSError:
        return []
    return [name for name in entries.folders if is_safe_part(name)]
