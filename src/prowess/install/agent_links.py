"""Links to installed skills: one in ``.agents/skills``, and one in the folder of each agent that was asked for.

A link is relative where the system can make one, else a junction, else a copy. A lock file or a journal can only name
links that are a plain name in one of the known folders.
"""

from __future__ import annotations

import errno
import hashlib
import os
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.agents import AGENTS, SHARED_SKILLS, find_agents, get_agent
from prowess.errors import InstallError, SourceError
from prowess.files import syscalls
from prowess.files.directory import Folder, select_folders, stat_folder
from prowess.files.paths import is_inside, is_link_into, read_link, relative_path
from prowess.files.syscalls import CREATE_JUNCTION
from prowess.files.write import make_folders, sync_tree, write_tree
from prowess.names import is_safe_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from prowess.files.write import NewFile
    from prowess.install.context import InstallContext
    from prowess.install.manifest import ProjectManifest
    from prowess.installed.scopes import InstallScope


_LINK_UNSUPPORTED = frozenset((errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP))
"""The errors that say that the system cannot make links here, and not that something went wrong."""


_MOVING_VARIABLES = ("XDG_CONFIG_HOME", *dict.fromkeys(agent.variable for agent in AGENTS.values() if agent.variable))


def _read_moves() -> tuple[tuple[str, str], ...]:
    """Return the variables of the environment that move folders of agents, with their values."""
    return tuple((name, os.environ[name]) for name in _MOVING_VARIABLES if name in os.environ)


@lru_cache(maxsize=8)  # a command makes several ``LinkFolders``, of two scopes
def _list_folders(location: str, root: str, env: tuple[tuple[str, str], ...]) -> Mapping[str, tuple[str, ...]]:
    """Return the folders in which each agent looks for the skills of a scope, by the agent's id."""
    moves = dict(env)
    return {
        agent.id: tuple(
            os.path.normpath(folder)
            for folder in (
                [os.path.join(root, agent.project)] if location == "project" else agent.user_folders(root, moves)
            )
        )
        for agent in AGENTS.values()
    }


class LinkPlace(NamedTuple):
    """A place for a link: its path, and that path as the lock file has it."""

    path: str
    recorded: str


class LinkFolders:
    """The folders of one scope where skills are linked."""

    def __init__(self, scope: InstallScope) -> None:
        self.scope = scope
        self._env = _read_moves() if scope.root == os.path.expanduser("~") else ()
        # Two scopes may link into one folder. The prefix keeps each from deleting what the other has staged there.
        self._prefix = f".prowess-{hashlib.sha256(os.fsencode(scope.base)).hexdigest()[:8]}-"
        self.shared = os.path.normpath(os.path.join(scope.root, SHARED_SKILLS))
        folders = _list_folders(scope.location, scope.root, self._env)
        self._known_folders = dict.fromkeys((self.shared, *(one for of_agent in folders.values() for one in of_agent)))
        self._folders_by_prefix: dict[str, str] = {}
        """The known folders, by the part of a recorded link before its last slash."""
        self._checked_folders: dict[str, tuple[int, int] | None] = {}
        """The device and inode of each folder that was found inside the project."""
        self._ways_to_base: dict[str, str] = {}
        """The way from each folder for links to the install base, as a link has it."""

    def folders_of_agent(self, agent: str) -> tuple[str, ...]:
        """Return the folders that an agent searches in this scope, the one that wins first; empty when it has none."""
        return _list_folders(self.scope.location, self.scope.root, self._env)[get_agent(agent).id]

    def folders_for(self, agents: Iterable[str]) -> list[str]:
        """Return the shared folder, then the first folder of each agent, without repetition.

        Raises ``SourceError`` for an agent that has no folder in this scope.
        """
        chosen = {self.shared: None}
        for name in agents:
            folders = self.folders_of_agent(name)
            if not folders:
                raise SourceError(f"{get_agent(name).title} has no folder for the {self.scope.location}'s skills")
            chosen[folders[0]] = None
        return list(chosen)

    def places_for(self, names: Iterable[str], agents: Iterable[str]) -> dict[str, list[LinkPlace]]:
        """Return the places of links by their names, each in the folders of ``folders_for``."""
        folders = [(folder, self.to_lock_path(folder)) for folder in self.folders_for(agents)]
        return {
            name: [
                LinkPlace(
                    os.path.join(folder, name),
                    os.path.join(recorded, name) if os.path.isabs(recorded) else f"{recorded}/{name}",
                )
                for folder, recorded in folders
            ]
            for name in names
        }

    def path_of_link(self, recorded: str) -> str:
        """Return the path of a recorded link; raises ``InstallError`` when it is not a plain name in a known folder."""
        # Fast path: thousands of recorded links begin alike, so their folder is checked once.
        before, _, name = recorded.rpartition("/")
        folder = self._folders_by_prefix.get(before)
        if folder is None or not is_safe_part(name):
            path = self._check_link_path(recorded)
            folder, checked_name = os.path.split(path)
            if checked_name == name:  # else the link is written in a way that only the check understands
                self._folders_by_prefix[before] = folder
        else:
            path = f"{folder}{os.sep}{name}"
        self.refuse_outside(folder)
        return path

    def _check_link_path(self, recorded: str) -> str:
        path = os.path.normpath(
            os.path.join(self.scope.root, *recorded.split("/")) if recorded[:1] != "/" else recorded
        )
        if os.path.dirname(path) not in self._known_folders or not is_safe_part(os.path.basename(path)):
            raise InstallError(
                f"{recorded[:120]!a} is not a place where agents look", self.scope.lock_folder, "bad-lock"
            )
        return path

    def to_lock_path(self, path: str) -> str:
        """A path as the lock file has it: relative to the root and with ``/`` when it is below the root."""
        inner = relative_path(path, self.scope.root)
        return path if inner.startswith(os.pardir) or os.path.isabs(inner) else inner.replace(os.sep, "/")

    def is_in_place(self, path: str, target: str, *, copy: bool) -> bool:
        """Return whether the link that ``stage_link`` would make at a path is there already."""
        written = read_link(path) if not copy and self._is_within(os.path.dirname(path)) else None
        # A junction of Windows says where it leads from the root of the volume.
        return written is not None and (
            written == self._link_text(target, path) or (os.name == "nt" and written == target)
        )

    def _link_text(self, target: str, path: str) -> str:
        """What a link at a path says that leads to ``target``, which is in the install base."""
        # The system follows ".." from the real folder, so both sides are resolved. Thousands of links are in one folder
        # and lead below another, and to resolve a path costs a call for each part.
        folder = os.path.dirname(path)
        way = self._ways_to_base.get(folder)
        if way is None:
            way = relative_path(os.path.realpath(self.scope.base), os.path.realpath(folder))
            self._ways_to_base[folder] = way
        return f"{way}{target.removeprefix(self.scope.base)}"

    def make_folder(self, folder: str) -> None:
        """Make a folder for links; raises ``InstallError`` (``link-refused``) when it leads out of the project."""
        self.refuse_outside(folder)
        make_folders(folder, durable=True)

    def stage_link(self, target: str, staged: str, final: str, files: Sequence[NewFile], *, copy: bool = False) -> bool:
        """Make a link at ``staged`` that leads to ``target`` once it is at ``final``; true for a copy of ``files``.

        It is a copy when ``copy`` asks for one, and when the system can make neither links nor junctions.
        """
        if copy:
            return _stage_copy(staged, files)
        try:
            syscalls.create_link(self._link_text(target, final), staged)
        except (OSError, NotImplementedError) as error:
            # Windows reports a missing privilege by a number of its own.
            is_refusal = isinstance(error, NotImplementedError) or error.errno in _LINK_UNSUPPORTED
            if not is_refusal and not getattr(error, "winerror", 0):
                raise
            return not stage_junction(target, staged) and _stage_copy(staged, files)
        return False

    def refuse_outside(self, folder: str) -> None:
        """Raise ``InstallError`` (``link-refused``) for a folder that leads out of the project."""
        # A project may come from somebody else, and its folders may be links to anywhere.
        if not self._is_within(folder):
            raise InstallError("the folder for links leads out of the project", folder, "link-refused")

    def _is_within(self, folder: str) -> bool:
        """True unless a folder of a project leads out of it on the real disk; a user's folders may be links."""
        if self.scope.location != "project":
            return True
        # Fast path: resolving a path costs a system call for each name in it, and thousands of links are in one folder.
        # A path that leads to a folder that was found inside before leads inside: one call shows that.
        checked = self._checked_folders.get(folder)
        if checked is not None and checked == _folder_identity(folder):
            return True
        real = os.path.realpath(folder)
        if not is_inside(real, os.path.realpath(self.scope.root)):
            return False
        # The identity is that of the resolved path: swapping the folder meanwhile cannot make another one count.
        self._checked_folders[folder] = _folder_identity(real)
        return True

    def delete_if_empty(self, folder: str) -> None:
        """Delete a folder for links when it is empty, and in a project the agent's own folder around it."""
        for empty in (folder, os.path.dirname(folder)) if self.scope.location == "project" else (folder,):
            if empty == os.path.normpath(self.scope.root):
                return
            try:
                syscalls.delete_folder(empty)
            except OSError:  # it is not empty, or belongs to somebody else
                return

    def staging_path(self, path: str, token: str) -> str:
        """Return the path, without its ending, at which a link for ``path`` waits."""
        return os.path.join(os.path.dirname(path), f"{self._prefix}{token}")

    def find_links_into(self, target: str) -> list[str]:
        """Return the links in the folders of this scope that lead into ``target``, recorded or not."""
        paths: list[str] = []
        for folder in filter(self._is_within, select_folders(self._known_folders)):
            with Folder(folder) as opened:
                # Hidden names are not skills: what another process has staged there has one.
                paths += (os.path.join(folder, name) for name in opened.list_entries().links if is_safe_part(name))
        return [path for path in paths if is_link_into(path, target)]

    def list_paths(self, name: str) -> list[str]:
        """Return the paths of a name in all folders of this scope, whether or not anything exists there."""
        return [os.path.join(folder, name) for folder in self._known_folders if self._is_within(folder)]

    def find_leftovers(self) -> list[str]:
        """Return the paths of staged links that a killed process left in the folders of this scope."""
        paths: list[str] = []
        for folder in filter(self._is_within, select_folders(self._known_folders)):
            with Folder(folder) as opened:
                entries = opened.list_entries()
            names = (*entries.folders, *entries.links)
            paths += (os.path.join(folder, name) for name in names if name.startswith(self._prefix))
        return paths


def skill_folder(scope: InstallScope, install: str, folder: str) -> str:
    """Return the path of a skill in an install.

    ``folder`` is where it is in the install, ``""`` for all of the install.
    """
    place = scope.install_folder(install)
    return os.path.join(place, *folder.split("/")) if folder else place


def _folder_identity(folder: str) -> tuple[int, int] | None:
    """Return the device and the inode of the folder at the end of a path; ``None`` without a folder."""
    info = stat_folder(folder)
    return None if info is None else (info.st_dev, info.st_ino)


def stage_junction(target: str, staged: str, *, make: Callable[[str, str], None] | None = CREATE_JUNCTION) -> bool:
    """Make a junction at ``staged`` to a folder that may still be staged too; return whether there is one.

    Windows makes junctions only to what exists, so an empty folder takes the place of the target for this moment.
    """
    if make is None:
        return False
    missing: list[str] = []
    folder = target
    while stat_folder(folder) is None:
        missing.append(folder)
        folder = os.path.dirname(folder)
    make_folders(target)
    try:
        return syscalls.create_junction(target, staged, make=make)
    finally:
        for folder in missing:
            syscalls.delete_folder(folder)


def _stage_copy(staged: str, files: Sequence[NewFile]) -> bool:
    """Write files to ``staged`` and have the disk hold them; returns true, since they are a copy."""
    syscalls.make_folder(staged, 0o755)
    write_tree(staged, files)
    sync_tree(staged)
    return True


def find_present_agents(context: InstallContext, *, project: bool) -> tuple[str, ...]:
    """The ids of the agents that have their own folder in the home folder, or, with ``project``, in the project."""
    home = context.user.root
    # The environment describes the real home folder; with another base it would lead out of that base.
    env = os.environ if home == os.path.expanduser("~") else {}
    return find_agents(context.project.root if project else "", home, env)


def choose_preset_agents(
    scope: InstallScope, manifest: ProjectManifest | None, present: Sequence[str]
) -> tuple[str, ...]:
    """Return the ids of the agents that skills are worth linking for when nobody names any.

    These are the agents that a project's manifest names for all skills, or else those that are ``present`` on this
    machine. Of agents that look in one folder the first is named. Agents that look in the shared folder need no link,
    and are left out.
    """
    # What the project asks for wins over what happens to be on this machine.
    named = manifest.defaults.agents if manifest is not None and scope.location == "project" else ()
    link_folders = LinkFolders(scope)
    agents_by_folder = {link_folders.shared: ""}
    for agent in named or present:
        for folder in link_folders.folders_of_agent(agent)[:1]:
            agents_by_folder.setdefault(folder, agent)
    return tuple(agent for agent in agents_by_folder.values() if agent)
