"""The scopes of installed skills: where the project's and the user's installs are, and which there are.

Nothing here changes anything on the disk. A scope has a base (``<base>/<org>/<name>``), a root below which agents look,
and a lock file. The project's base is ``.prowess/skills`` in its folder; that folder is the root and holds
``prowess.lock``. The user's base is ``prowess/skills`` in the configuration folder; the home folder is the root, and
the lock file is beside ``skills``. With a base of any other shape everything stays inside it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.addresses.skill_ref import SkillRef
from prowess.errors import InstallError, NotInstalledError
from prowess.files.directory import Folder, stat_folder
from prowess.files.paths import is_real_folder, is_really_inside
from prowess.files.projects import NATIVE_PROJECT, config_home, project_folders, project_root
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import read_lock
from prowess.names import is_safe_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prowess.lockfile.read import LockEntry

ScopeName = Literal["project", "user"]
Location = Literal["project", "user", "all"]
"""Which installs a command means: the project's, the user's, or both."""
STORE_FOLDER = ".store"
"""The folder in a base where trees wait for their place, and where replaced ones go."""
_USER_SUBFOLDERS = ("prowess", "skills")
_CONFIG = ".config"


@dataclass(frozen=True, slots=True)
class InstalledSkill:
    """An install: its organisation and name, whether it is the ``"project"``'s or the ``"user"``'s, and its folder."""

    org: str
    name: str
    location: ScopeName
    path: Path

    @property
    def full_name(self) -> str:
        """``org/name``."""
        return f"{self.org}/{self.name}"


class InstallScope(NamedTuple):
    """The folders that belong to one lock file."""

    location: ScopeName
    base: str
    """The folder of the installs: each is ``<base>/<org>/<name>``."""
    root: str
    """The folder below which agents look for skills."""
    lock_folder: str
    """The folder with the lock file and the manifest."""

    def install_folder(self, full_name: str) -> str:
        """Return the folder of the install ``org/name``."""
        return os.path.join(self.base, *full_name.split("/"))


def default_user_dir() -> Path:
    """``$XDG_CONFIG_HOME/prowess/skills``, else ``~/.config/prowess/skills``, on every platform."""
    return Path(config_home(os.path.expanduser("~"), os.environ), *_USER_SUBFOLDERS)


def default_project_dir() -> Path:
    """``.prowess/skills`` in the working folder."""
    return Path(os.getcwd(), *NATIVE_PROJECT.split("/"))


def project_scope(base: str | os.PathLike[str] | None = None) -> InstallScope:
    """Return the project's scope: that of the project around the working folder, unless a base is given."""
    folder = os.path.abspath(
        os.fspath(base)
        if base is not None
        else os.path.join(project_root(os.getcwd(), os.path.expanduser("~")), *NATIVE_PROJECT.split("/"))
    )
    # A base of another shape than .prowess/skills is its own root, so that nothing outside of it is touched.
    root = folder.removesuffix(os.sep + NATIVE_PROJECT.replace("/", os.sep))
    return InstallScope("project", folder, root, root)


def user_scope(base: str | os.PathLike[str] | None = None) -> InstallScope:
    """Return the user's scope: the one in the configuration folder, unless a base is given."""
    usual = os.fspath(default_user_dir())
    folder = os.path.abspath(os.fspath(base) if base is not None else usual)
    above = folder.removesuffix(os.sep + "skills")
    config = above.removesuffix(os.sep + "prowess")
    if folder == usual:
        return InstallScope("user", folder, os.path.expanduser("~"), above)
    # Somebody's .config/prowess/skills elsewhere: the folder around it is that person's home.
    if folder == os.path.join(config, *_USER_SUBFOLDERS) and os.path.basename(config) == _CONFIG:
        return InstallScope("user", folder, os.path.dirname(config), above)
    return InstallScope("user", folder, folder, folder)


def standard_scopes(cwd: str, home: str, env: Mapping[str, str], *, project: bool = True) -> tuple[InstallScope, ...]:
    """The scopes whose skills ``discover`` finds: those of the project's folders, the nearest first, and the user's."""
    config = config_home(home, env)
    user = InstallScope(
        "user", os.path.join(config, *_USER_SUBFOLDERS), home, os.path.join(config, _USER_SUBFOLDERS[0])
    )
    folders = project_folders(cwd, home) if project else ()
    return (*(project_scope(os.path.join(folder, *NATIVE_PROJECT.split("/"))) for folder in folders), user)


def select_scopes(scopes: Sequence[InstallScope], location: Location) -> tuple[InstallScope, ...]:
    """Those of some scopes that a location means, in their order."""
    return tuple(scope for scope in scopes if location in {scope.location, "all"})


def find_install(ref: SkillRef | str, scopes: Sequence[InstallScope]) -> tuple[InstallScope, str]:
    """Return the first scope that has the skill, and its folder there; the version of the reference is ignored.

    Raises ``NotInstalledError`` where no scope has it.
    """
    wanted = ref if isinstance(ref, SkillRef) else SkillRef.parse(ref)
    SkillRef.parse(str(wanted))  # a reference that a program built was never parsed, and its parts become a path
    for scope in scopes:
        place = scope.install_folder(wanted.full_name)
        if stat_folder(place) is not None:
            return scope, place
        copies = find_copies(_read_entry(scope, wanted.full_name), scope)
        if copies:
            return scope, copies[0]
    raise NotInstalledError(f"skill {wanted.full_name} is not installed")


def _read_entry(scope: InstallScope, full_name: str) -> LockEntry | None:
    """Return the entry of an install.

    ``None`` where the lock file has none, or cannot be read: other commands report that.
    """
    with suppress(InstallError):
        return read_lock(scope.lock_folder).get(full_name)
    return None


def find_copies(entry: LockEntry | None, scope: InstallScope) -> list[str]:
    """Return the folders of an install in copy mode: the first copy of each of its skills that is on the disk."""
    folders: dict[str, str] = {}
    for recorded in entry.copies if entry is not None and entry.is_copied else ():
        path = os.path.normpath(os.path.join(scope.root, recorded))
        # A project's lock file may come from a stranger, so a copy that it records outside of the project is ignored.
        if is_real_folder(path) and (scope.location == "user" or is_really_inside(path, scope.root)):
            folders.setdefault(os.path.basename(path), path)
    return list(folders.values())


def locate_install(entry: LockEntry | None, scope: InstallScope, full_name: str) -> str:
    """Return the folder where an install is or will be: in the base, or the first copy of an install in copy mode."""
    if entry is None or not entry.is_copied:
        return scope.install_folder(full_name)
    return os.path.normpath(os.path.join(scope.root, next(iter(entry.copies), "")))


def is_on_disk(entry: LockEntry, scope: InstallScope) -> bool:
    """True when an install is on the disk: its folder in the base, or, in copy mode, a copy of each of its skills."""
    if entry.is_copied:
        return len(find_copies(entry, scope)) == len({os.path.basename(copy) for copy in entry.copies})
    return os.path.lexists(scope.install_folder(entry.name))


def list_copied_installs(scope: InstallScope, locked: Mapping[str, LockEntry]) -> Iterator[InstalledSkill]:
    """Yield every install in copy mode that is on the disk, by name; its path is that of its first copy."""
    for full_name in sorted(locked):
        folders = find_copies(locked[full_name], scope)
        if folders:
            org, _, name = full_name.partition("/")
            yield InstalledSkill(org, name, scope.location, Path(folders[0]))


def list_installs(scope: InstallScope) -> Iterator[InstalledSkill]:
    """Yield every install in the base, which is every folder two levels below it, by name.

    Links and hidden names are not.
    """
    for org, name in _list_org_names(scope):
        yield InstalledSkill(org, name, scope.location, Path(scope.base, org, name))


def list_install_names(scope: InstallScope) -> list[str]:
    """Return the ``org/name`` of every install in the base, sorted."""
    # Without Path objects, unlike ``list_installs``: they cost more than listing the folders.
    return [f"{org}/{name}" for org, name in _list_org_names(scope)]


def _list_org_names(scope: InstallScope) -> Iterator[tuple[str, str]]:
    for org in _list_folders(scope.base):
        for name in _list_folders(os.path.join(scope.base, org)):
            yield org, name


def _list_folders(path: str) -> list[str]:
    try:
        with Folder(path) as folder:
            entries = folder.list_entries(DEFAULT_LIMITS.max_entries_per_folder)
    except OSError:
        return []
    return [name for name in entries.folders if is_safe_part(name)]
