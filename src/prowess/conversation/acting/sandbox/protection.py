"""What a program in a sandbox may not change in its working folder: what later runs outside of the sandbox.

That is Prowess itself with its interpreter and its own files, the programs on the search path, the configuration of
git, of shells and of agents. The search looks at every folder of the working folder, because a repository or an agent's
folder may be anywhere in it, and is bounded by ``Limits``.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import sysconfig
import tempfile
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from prowess.conversation.acting.sandbox.bwrap import find_programs
from prowess.conversation.acting.sandbox.layout import Protected
from prowess.discovery.agents import AGENTS
from prowess.errors import ResourceError, SandboxError
from prowess.files import syscalls
from prowess.files.contained_open import open_folder_beneath
from prowess.files.paths import is_inside, is_link, path_inside, resolve_path
from prowess.files.projects import config_home, default_cache_dir, user_config_file, user_state_file
from prowess.files.read import OpenFile
from prowess.names import fold_name, is_short_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.limits import Limits

_SHELL_FILES = (
    *(".profile", ".bash_profile", ".bash_login", ".bashrc", ".bash_logout", ".bash_aliases", ".inputrc", ".envrc"),
    *(".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".shrc", ".cshrc", ".tcshrc"),
    *(".login", ".logout", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment"),
)
_AGENT_FILES = (".mcp.json", ".claude.json", ".aider.conf.yml", "opencode.json")
_PROGRAM_FILES = (
    *(".gitconfig", ".husky", ".githooks", ".ssh", ".gnupg", ".netrc"),
    *(".vimrc", ".exrc", ".nvimrc", ".emacs", ".emacs.d", ".tmux.conf", ".screenrc", ".gdbinit", ".lldbinit"),
)
_OWN_FILES = (
    *(".prowess", "prowess.toml", "prowess.lock", ".prowess.journal"),
    *("prowess-policy.toml", "prowess-revoked.toml", "prowess-advisories.json"),
)
_GIT = ".git"
_GIT_FILES = frozenset(("hooks", "info", "commondir", "gitdir"))
_GIT_BEGINNINGS = ("config", "rebase-")
_GIT_FOLDERS_WITHIN = frozenset(("modules", "worktrees"))
_GIT_EMPTY_FOLDERS = ("hooks", "info")  # git itself makes both in a new repository, and an empty one changes nothing
_GIT_UNWELCOME = ("commondir", "config.worktree")
"""Files that lead git to another configuration. No command of git makes one in a repository that exists already."""
# The keys of git's configuration whose values are files that git reads as configuration, or runs.
_CONFIG_KEY = re.compile(
    r"^[ \t]*(?:\[[^\]\n]*\][ \t]*)?(hookspath|templatedir|path|fsmonitor|sshcommand|pager|editor|askpass"
    r"|program|cmd|helper|clean|smudge|process|textconv|driver|command|alternaterefscommand|difffilter|gitproxy"
    r"|packobjectshook)[ \t]*=",
    re.IGNORECASE | re.MULTILINE,
)
_MAX_CONFIG_BYTES = 1 << 20
_MAX_VALUE = 8_192  # a path has fewer characters


def _find_agent_names() -> Iterator[str]:
    for agent in AGENTS.values():
        for path in (agent.project, *agent.user):
            name = path.removeprefix("~/").partition("/")[0]
            if name.startswith(".") and name != ".config":
                yield name


_NAMES = frozenset((*_SHELL_FILES, *_AGENT_FILES, *_PROGRAM_FILES, *_OWN_FILES, *_find_agent_names()))
"""Protected wherever they are in the working folder. In lower case: some file systems ignore the case of a name."""


# -- what is Prowess's own ---------------------------------------------------------------------------------------------


def _own_folders() -> dict[str, str]:
    """Return the folders of Prowess's own code and state, each with words that say what it is."""
    config, state = (os.path.dirname(find("-")) for find in (user_config_file, user_state_file))
    return {
        **dict.fromkeys(_code_folders(), "the Python that runs Prowess"),
        _package_folder(): "the package of Prowess",
        config: "Prowess's configuration",
        state: "Prowess's state",
        default_cache_dir(): "Prowess's cache",
    }


def _package_folder() -> str:
    return os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))


def _code_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    return tuple(dict.fromkeys((*(paths[name] for name in names), os.path.dirname(os.path.abspath(sys.executable)))))


def _search_path() -> Iterator[str]:
    return (os.path.abspath(path) for path in os.environ.get("PATH", os.defpath).split(os.pathsep))


def check_folder(work: str) -> None:
    """Raise ``SandboxError`` (``unsafe-folder``) for a working folder that is, or is in, one of Prowess's own."""
    folder = os.path.realpath(work)
    for path, what in _own_folders().items():
        if is_inside(folder, os.path.realpath(path)):
            raise _refuse_folder(work, f"is in {path}, with {what}")
    others = {
        **dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix), "the Python that runs Prowess"),
        config_home(os.path.expanduser("~"), os.environ): "the configuration of your programs",
        tempfile.gettempdir(): "private copies of skills while they run",
        **dict.fromkeys(_search_path(), "programs on the search path (PATH)"),
    }
    for path, what in others.items():
        if folder == os.path.realpath(path):
            raise _refuse_folder(work, f"is the folder with {what}")
    if _GIT in folder.lower().split(os.sep):
        raise _refuse_folder(work, "is in the folder .git of a repository, with its hooks and configuration")


def _refuse_folder(work: str, why: str) -> SandboxError:
    message = f"the working folder {work} {why}: what is written there could run outside of the sandbox"
    return SandboxError(message, work, "unsafe-folder")


def _find_places() -> Iterator[str]:
    """Yield the files and folders that are protected by their paths, where they are in the working folder."""
    home = os.path.expanduser("~")
    yield from _own_folders()
    yield from (sys.prefix, sys.exec_prefix, sys.base_prefix, os.path.abspath(sys.executable))
    yield from (program for program, _ in find_programs())
    yield tempfile.gettempdir()
    yield config_home(home, os.environ)
    for agent in AGENTS.values():
        yield from agent.find_marks("", home, os.environ)


@cache
def _find_own_inodes() -> frozenset[tuple[int, int]]:
    """Return the identities of Prowess's own files that have more than one name."""
    # Some installers link the files of all environments to one cache, so a file of another environment, or of the
    # cache, may be a file of this one.
    found: set[tuple[int, int]] = set()
    for top in {os.path.realpath(path) for path in (*_own_folders(), *(program for program, _ in find_programs()))}:
        pending = [top]
        while pending:
            with suppress(OSError), os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif (info := entry.stat(follow_symlinks=False)).st_nlink > 1:
                        found.add((info.st_dev, info.st_ino))
    return frozenset(found)


def is_protected_path(path: str, work: str, also: Sequence[str] = ()) -> bool:
    """Return whether a path in a working folder is protected by a name in it, or by its place.

    A name counts as every file system may read it; a short name may be that of any file. A file that makes a repository
    of the folders around it is protected like the files of one.
    """
    inside = path_inside(path, work) or ""
    parts = inside.split(os.sep)
    names = {fold_name(part) for part in parts}
    if not _NAMES.isdisjoint(names) or _GIT in names or any(map(is_short_name, parts)):
        return True
    if any(_is_repository(os.path.join(work, *parts[:depth]), fold_name(name)) for depth, name in enumerate(parts)):
        return True
    places = (os.path.realpath(place) for place in (*_find_places(), *_search_path(), *also))
    return any(is_inside(path, place) for place in places if path_inside(place, work))


def _is_repository(folder: str, new: str) -> bool:
    """Return whether git takes a folder, whatever its name, for a repository once it has the entry ``new``."""
    layouts = (("HEAD", "objects", "refs"), ("HEAD", "commondir"))
    return any(
        all(name.lower() == new or os.path.lexists(os.path.join(folder, name)) for name in layout) for layout in layouts
    )


def name_repository(path: str) -> str:
    """Return the ``.git`` that a protected path is in, or the path."""
    parts = path.split("/")
    return "/".join(parts[: parts.index(_GIT) + 1]) if _GIT in parts else path


# -- the search --------------------------------------------------------------------------------------------------------


def find_protected(work: str, limits: Limits, also: Sequence[str] = ()) -> Protected:
    """Return what a program in a sandbox may not change in its working folder.

    ``work``: its real path. ``also``: further paths that the program may not change. Raises ``SandboxError``:
    ``unsafe-folder`` for a working folder that cannot be protected, ``folder-too-large`` beyond the limits.
    """
    check_folder(work)
    search = _Search(work, limits)
    # A folder of the search path may be missing: a program that is put there would be found before that of the system.
    for place in (*_find_places(), *_search_path(), *also):
        search.protect_place(place)
    search.protect_user_configuration()
    search.protect_home()
    search.walk()
    return search.make_result()


class _Search:
    """One search of a working folder; all paths that it collects are relative to that folder."""

    def __init__(self, work: str, limits: Limits) -> None:
        self._work = work
        self._limits = limits
        self._entries: set[str] = set()
        self._closed: set[str] = set()
        self._unwelcome: list[str] = []
        self._seen = 0
        self._pending: list[tuple[str, bool]] = [("", False)]
        """Folders to look at, and whether each is protected as a whole, so that only links in it matter."""
        self._several_names: list[tuple[str, tuple[int, int]]] = []
        self._protected_inodes: set[tuple[int, int]] = set()
        self._hooks_of_user: set[str] = set()
        """Folders of hooks in each repository, as the user's configuration of git names them."""

    # -- what is protected by its path ---------------------------------------------------------------------------------

    def protect_place(self, path: str) -> None:
        """Protect a file or folder, and every link on the way to it, as far as they are in the working folder."""
        resolved = resolve_path(path)
        for link in resolved.links:
            self._close_parent(path_inside(link, self._work))
        inside = path_inside(resolved.end, self._work)
        if not inside:
            return
        if is_link(resolved.end):  # a loop of links, which nothing can be mounted over
            self._close_parent(inside)
            return
        if os.path.lexists(resolved.end):
            self._entries.add(inside)
            return
        # Nothing can be mounted over what is missing, so nothing may be made in the folder where it would begin.
        while inside and not os.path.isdir(os.path.join(self._work, inside)):
            inside = os.path.dirname(inside)
        self._closed.add(inside)

    def protect_home(self) -> None:
        """Let nothing be made at the top of the home folder, and no hidden entry there be changed.

        Shells, desktops and tools of every kind read these when they start: ``.oh-my-zsh``, ``.kube``, ``.local``. Not
        ``.git``: there, the rules for repositories are enough.
        """
        home = os.path.realpath(os.path.expanduser("~"))
        inside = path_inside(home, self._work)
        if inside is None or not os.path.isdir(home):
            return
        self._closed.add(inside)
        with suppress(OSError):
            for child in self._list_folder(inside):
                name = child.name.lower()
                if not name.startswith(".") or name == _GIT or name in _NAMES:
                    continue
                # What links in them lead to is not protected: caches of packages share files with every project.
                if child.is_symlink():
                    self.protect_place(child.path)
                else:
                    self._entries.add(_join(inside, child.name))

    def _close_parent(self, inside: str | None) -> None:
        if inside:
            self._closed.add(os.path.dirname(inside))

    # -- what is protected by its name ---------------------------------------------------------------------------------

    def walk(self) -> None:
        """Look at every folder that is not protected as a whole, and at the links in those that are."""
        own = frozenset(self._entries)
        around_own = {os.path.dirname(path) for path in own}
        while self._pending:
            folder, is_protected = self._pending.pop()
            try:
                children = self._list_folder(folder)
            except OSError:
                self._entries.add(folder)  # the program might get to see what the host does not
                continue
            if is_protected:
                self._look_at_protected(folder, children)
                continue
            if folder in around_own:
                children = [child for child in children if _join(folder, child.name) not in own]
            names = {child.name for child in children}
            is_named = os.path.basename(folder).lower() == _GIT
            if is_named or {"HEAD", "objects", "refs"} <= names or {"HEAD", "commondir"} <= names:
                children = self._look_at_repository(folder, children, names)
                if is_named:
                    continue
            for child in children:
                self._look_at_entry(folder, child)
        self._protect_files_with_several_names()

    def _list_folder(self, folder: str) -> list[os.DirEntry[str]]:
        left = self._limits.max_searched_entries - self._seen
        with os.scandir(os.path.join(self._work, folder)) as children:
            found = list(islice(children, left + 1))
        if len(found) > left:
            raise self._refuse(f"{self._limits.max_searched_entries:,} entries to search for what must not be changed")
        self._seen += len(found)
        return found

    def _refuse(self, what: str) -> SandboxError:
        message = f"the working folder {self._work} has more than {what}: nothing runs in it"
        return SandboxError(message, self._work, "folder-too-large")

    def _look_at_entry(self, folder: str, child: os.DirEntry[str]) -> None:
        name = child.name.lower()
        is_folder = child.is_dir(follow_symlinks=False)
        if name in _NAMES or (name == _GIT and not is_folder):
            self._protect_entry(folder, child)
        elif is_folder:
            self._pending.append((_join(folder, child.name), False))
        else:
            self._note_several_names(folder, child)

    def _look_at_repository(
        self, folder: str, children: list[os.DirEntry[str]], names: set[str]
    ) -> list[os.DirEntry[str]]:
        """Protect what git runs or reads as configuration in a repository; return the other entries."""
        others: list[os.DirEntry[str]] = []
        for child in children:
            name = child.name.lower()
            if name.endswith(".lock"):  # git has it for a moment, and reads none
                others.append(child)
            elif name in _GIT_FILES or name.startswith(_GIT_BEGINNINGS):
                self._protect_entry(folder, child)
                if name.startswith("config"):
                    self._protect_configured_files(folder, child.name)
            elif name in _GIT_FOLDERS_WITHIN and child.is_dir(follow_symlinks=False):
                self._pending.append((_join(folder, child.name), False))
            else:
                others.append(child)
        for hooks in self._hooks_of_user:
            self.protect_place(os.path.normpath(os.path.join(self._work, os.path.dirname(folder), hooks)))
        if "HEAD" in names:
            missing = [name for name in _GIT_EMPTY_FOLDERS if name not in names and "commondir" not in names]
            self._entries |= {_join(folder, name) for name in missing if self._make_folder(folder, name)}
            self._unwelcome += [_join(folder, name) for name in _GIT_UNWELCOME if name not in names]
        return others

    def _protect_entry(self, folder: str, child: os.DirEntry[str]) -> None:
        path = _join(folder, child.name)
        if child.is_symlink():
            self.protect_place(child.path)
            return
        self._entries.add(path)
        if child.is_dir(follow_symlinks=False):
            self._pending.append((path, True))
        else:
            self._note_protected(child)

    def _look_at_protected(self, folder: str, children: list[os.DirEntry[str]]) -> None:
        for child in children:
            if child.is_symlink():  # such as a hook that is a link to a script of the project
                self._protect_target(child.path)
            elif child.is_dir(follow_symlinks=False):
                self._pending.append((_join(folder, child.name), True))
            else:
                self._note_protected(child)

    def _protect_target(self, path: str) -> None:
        """Protect what a path leads to, if it exists in the working folder and is not a folder around the path."""
        end = os.path.realpath(path)
        if os.path.exists(end) and not is_inside(os.path.dirname(path), end):
            self.protect_place(path)

    def protect_user_configuration(self) -> None:
        """Protect what the user's own configuration of git, which counts in every repository, names in the folder."""
        home = os.path.expanduser("~")
        named = os.environ.get("GIT_CONFIG_GLOBAL")
        files = [named] if named else [os.path.join(home, ".gitconfig")]
        files += [] if named else [os.path.join(config_home(home, os.environ), "git", "config")]
        self._protect_named_files([*files, os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"], ())

    def _protect_configured_files(self, folder: str, name: str) -> None:
        """Protect the files and folders that a repository's configuration of git names, such as ``core.hooksPath``."""
        base = os.path.join(self._work, folder)
        self._protect_named_files([os.path.join(base, name)], (base, os.path.dirname(base)))

    def _protect_named_files(self, files: list[str], starts: tuple[str, ...]) -> None:
        """Protect what some configurations of git name, and what they include; ``starts``: of a repository.

        What git reads and runs by itself, hooks and included files, is protected also where it does not exist yet.
        """
        for path in files:  # grows by each file that is included, once
            for key, written in _read_settings(self._read_configuration(path)):
                value = os.path.expanduser(written)
                if not value:
                    continue
                if key == "hookspath" and not starts and not os.path.isabs(value):
                    self._hooks_of_user.add(value)
                    continue
                if key in {"hookspath", "templatedir", "path"}:
                    start = starts[-1] if starts and key == "hookspath" else os.path.dirname(path)
                    place = os.path.normpath(os.path.join(start, value))
                    if not is_inside(path, place):
                        self.protect_place(place)
                    if key == "path" and place not in files:
                        files.append(place)
                        self._check_number(len(files))
                    continue
                words = [value]
                with suppress(ValueError):
                    words += shlex.split(value.lstrip("!"))[:1]
                for start in dict.fromkeys((os.path.dirname(path), *starts)):
                    for word in words:
                        self._protect_target(os.path.normpath(os.path.join(start, word)))

    def _check_number(self, number: int) -> None:
        if number > self._limits.max_protected_entries:
            raise self._refuse(f"{self._limits.max_protected_entries:,} entries that must not be changed")

    def _read_configuration(self, path: str) -> str:
        """Return the text of a configuration of git; ``""`` where it cannot be read."""
        place = os.path.realpath(path)
        inside = path_inside(place, self._work)
        folder, parts = (
            (self._work, inside.split(os.sep)) if inside else (os.path.dirname(place), [os.path.basename(place)])
        )
        try:
            with OpenFile(folder, tuple(parts)) as file:
                return file.read_all(_MAX_CONFIG_BYTES).decode("utf-8", "replace")
        except ResourceError:
            return ""

    def _make_folder(self, folder: str, name: str) -> bool:
        try:
            handle = open_folder_beneath(self._work, tuple(filter(None, folder.split("/"))))
        except OSError:
            return False
        try:
            syscalls.make_folder(name, folder=handle)
        except OSError:
            return False
        finally:
            os.close(handle)
        return True

    # -- files with several names --------------------------------------------------------------------------------------

    def _note_several_names(self, folder: str, child: os.DirEntry[str]) -> None:
        with suppress(OSError):
            info = child.stat(follow_symlinks=False)
            if info.st_nlink > 1:
                self._several_names.append((_join(folder, child.name), (info.st_dev, info.st_ino)))

    def _note_protected(self, child: os.DirEntry[str]) -> None:
        with suppress(OSError):
            info = child.stat(follow_symlinks=False)
            if info.st_nlink > 1:
                self._protected_inodes.add((info.st_dev, info.st_ino))

    def _protect_files_with_several_names(self) -> None:
        """Protect other names of protected files: who writes to one of the names writes to the file."""
        if not self._several_names:
            return
        protected = self._protected_inodes | _find_own_inodes()
        for path, identity in self._several_names:
            if identity in protected:
                # With its folder: an environment that shares files with this one shares hundreds.
                self._entries.add(os.path.dirname(path) or path)

    # -- the result ----------------------------------------------------------------------------------------------------

    def make_result(self) -> Protected:
        """Return what was found, without entries in protected folders; raise ``SandboxError`` where it is too much."""
        entries = {path for path in self._entries if self._entries.isdisjoint(_parents(path))}
        closed = {path for path in self._closed if path not in entries and entries.isdisjoint(_parents(path))}
        between = {parent for path in (*entries, *closed) for parent in _parents(path)} - closed - {""}
        self._check_number(len(entries) + len(between) + len(closed))
        unwelcome = (path for path in self._unwelcome if entries.isdisjoint(_parents(path)))
        return Protected(*(tuple(sorted(paths)) for paths in (entries, between, closed, unwelcome)))


def _read_settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of ``_CONFIG_KEY`` in a configuration, in lower case, each with its value as git reads it."""
    for match in _CONFIG_KEY.finditer(text):
        value, is_quoted = "", False
        characters = iter(text[match.end() : match.end() + _MAX_VALUE].replace("\r\n", "\n"))
        for character in characters:
            if character == "\\":  # before a line break, it goes on in the next line
                value += next(characters, "").strip("\n")
            elif character == '"':
                is_quoted = not is_quoted
            elif character == "\n" or (character in "#;" and not is_quoted):
                break
            else:
                value += character
        yield match[1].lower(), value.strip()


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _parents(path: str) -> Iterator[str]:
    """Yield the folders around a relative path, the nearest first, and at last ``""``."""
    while path:
        path = os.path.dirname(path)
        yield path
