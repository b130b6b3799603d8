"""Walks a tree of files without following a link; lists it, hashes it, reads it into memory, and gives its digest.

Every walk of a skill's folder is ``walk_tree``, and every digest of a skill is ``digest_tree``. Other walks do
something else and stay by themselves: ``discovery/walk.py`` looks for skills and reads only heads, ``identity.py``
watches folders of any size by the clock, ``delete.py`` deletes what it meets, and ``sync_tree`` and ``folder_size`` go
through folders that this process itself has just made.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import Issue, ResourceError, ResourceTooLargeError
from prowess.files.contained_open import HAS_HANDLES
from prowess.files.directory import is_link_entry, is_utf8_name, open_folder_beneath
from prowess.files.read import OpenFile
from prowess.names import GIT_FIRST_CHARS, is_git_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prowess.files.directory import Folder
    from prowess.files.write import NewFile
    from prowess.limits import Limits

    Visit = Callable[[Folder, str, str], None]
    """Called for each regular file with its open folder, its name there, and its path from the top of the tree."""

HAS_EXECUTABLE_BITS = os.name != "nt"
"""False where files have no executable bit.

There a lock file or an archive says which files have it. Of all other files, those that begin with ``#!`` count."""

GUESSED_CODE = "guessed-executable"
EXTRA_DEPTH = 8
"""How many folders deeper than one skill a tree of several skills may be."""
_SHEBANG = b"#!"
_SMALL_FILE_BYTES = 1 << 20
"""Up to this size a file is read by one call and hashed at once."""


class TreeBounds(NamedTuple):
    """How much of a tree is walked: a small tuple, since a copy of ``Limits`` costs more than a small walk."""

    files: int
    entries: int
    depth: int
    """How many folders deep, counting the topmost one."""

    @classmethod
    def for_skill(cls, limits: Limits) -> TreeBounds:
        """Return the bounds of one skill."""
        return cls(limits.max_files_per_skill, limits.max_entries_per_skill, limits.max_depth_per_skill)

    @classmethod
    def for_install(cls, limits: Limits) -> TreeBounds:
        """The bounds of a tree that may hold many skills, with more files and deeper folders than one skill has."""
        files = max(limits.max_files_per_skill, limits.max_install_files)
        return cls(files, max(limits.max_entries_per_skill, 4 * files), limits.max_depth_per_skill + EXTRA_DEPTH + 1)


class TreeListing(NamedTuple):
    """The regular files below a folder, in byte order of their POSIX paths, and every other entry by its kind."""

    files: list[str]
    links: list[str]
    others: list[str]
    bad_names: list[str]
    unreadable: list[str]
    git_names: list[str]
    """Entries that some file system takes for ``.git``; the other lists leave them out."""
    bound: str = ""
    """Which limit ended the walk, or ``""``."""
    bound_at: str = ""
    """The folder at which it ended."""

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Why the tree is not complete, or not made of regular files alone: ``(code, path)`` each."""
        kinds = (
            ("link-in-skill", self.links),
            ("special-file", self.others),
            ("bad-file-name", self.bad_names),
            ("unreadable-directory", self.unreadable),
        )
        problems = [(code, path) for code, paths in kinds for path in paths]
        return [*problems, (self.bound, self.bound_at)] if self.bound else problems


class FileHash(NamedTuple):
    """What a lock file records of a file: its size, whether its owner may execute it, and its SHA-256 (hex)."""

    size: int
    executable: bool
    sha256: str


class HashedTree(NamedTuple):
    """Every regular file below a folder with its hash, and the problems that were met: ``(code, path)`` each."""

    files: dict[str, FileHash]
    problems: list[tuple[str, str]]


class ReadTree(NamedTuple):
    """Every regular file below a folder (path, bytes, executable), and the problems that were met (code, path)."""

    files: list[tuple[str, bytes, bool]]
    problems: list[tuple[str, str]]


class _TreeWalk:
    """One walk by folder handles, so that nobody can swap a folder on the way for a link."""

    def __init__(self, bounds: TreeBounds, visit: Visit | None) -> None:
        self.bounds = bounds
        self.visit = visit
        self.tree = TreeListing([], [], [], [], [], [])
        self.entries_left = bounds.entries
        self.bound = ("", "")

    def walk_folder(self, folder: Folder, prefix: str, depth: int) -> None:
        """Walk a folder and those below it; raises ``OSError`` when the topmost folder (depth 1) cannot be listed."""
        files: list[str] = []
        folders: list[str] = []
        try:
            self._list_folder(folder, prefix, files, folders)
        except OSError:
            if depth == 1:  # nothing at all can be said about the tree
                raise
            self.tree.unreadable.append(prefix[:-1])
            return
        if files:
            self._add_files(folder, files, prefix)
        folders.sort()
        for name in folders:
            if self.bound[0]:
                return
            self._walk_child(folder, name, prefix, depth)

    def _list_folder(self, folder: Folder, prefix: str, files: list[str], folders: list[str]) -> None:
        """Sort the names of a folder by kind.

        Fast path: ``Folder.entries`` would do it with five lists and as many sorts for each folder, and verifying small
        installs would take half as long again.
        """
        with folder.scan_entries() as entries:
            for entry in entries:
                self.entries_left -= 1
                if self.entries_left < 0:
                    self.bound = ("too-many-files", prefix[:-1])
                    return
                name = entry.name
                # First, since a name for ".git" must not be used whatever kind of entry it is. Nearly every name shows
                # by its first letter that it needs no closer look.
                if (name[0] in GIT_FIRST_CHARS or not name.isascii()) and self._refuse_name(name, prefix):
                    continue
                if entry.is_file(follow_symlinks=False):
                    files.append(name)
                elif entry.is_dir(follow_symlinks=False) and (HAS_HANDLES or not is_link_entry(entry)):
                    folders.append(name)
                else:
                    (self.tree.links if is_link_entry(entry) else self.tree.others).append(prefix + name)

    def _refuse_name(self, name: str, prefix: str) -> bool:
        """Note a name that must not be used in the listing; return whether it is such a name."""
        if is_git_name(name):
            self.tree.git_names.append(prefix + name)
        elif not is_utf8_name(name):
            self.tree.bad_names.append(prefix + ascii(name))
        else:
            return False
        return True

    def _add_files(self, folder: Folder, names: list[str], prefix: str) -> None:
        names.sort()  # no system lists names in a fixed order, and a bound must end the walk at one file everywhere
        known = self.tree.files
        if len(known) + len(names) > self.bounds.files:
            self.bound = ("too-many-files", prefix[:-1])
            del names[self.bounds.files - len(known) :]
        for name in names:
            known.append(prefix + name)
            if self.visit is not None:
                self.visit(folder, name, prefix + name)

    def _walk_child(self, folder: Folder, name: str, prefix: str, depth: int) -> None:
        if depth >= self.bounds.depth:
            self.bound = ("too-deep", prefix + name)
            return
        try:
            child = folder.open_child(name, lists=True)
        except OSError:
            self.tree.unreadable.append(prefix + name)
            return
        with child:
            self.walk_folder(child, f"{prefix}{name}/", depth + 1)


def walk_tree(base: str, parts: tuple[str, ...], bounds: TreeBounds, visit: Visit | None = None) -> TreeListing:
    """List the folder ``parts`` below ``base``, within the bounds; ``.git`` is left out (``is_git_name``).

    Links and special files are named and never opened. ``visit`` is called for each file while its folder is open, for
    no more files than the bounds allow; an exception from it ends the walk. Raises ``OSError`` when the folder cannot
    be listed.
    """
    walk = _TreeWalk(bounds, visit)
    with open_folder_beneath(base, parts) as folder:
        walk.walk_folder(folder, "", 1)
    tree = walk.tree
    tree.files.sort(key=str.encode)
    for group in (tree.links, tree.others, tree.bad_names, tree.git_names):
        if group:
            group.sort()
    return tree._replace(bound=walk.bound[0], bound_at=walk.bound[1]) if walk.bound[0] else tree


def list_tree(base: str, parts: tuple[str, ...], limits: Limits) -> TreeListing:
    """List the folder of one skill, within its limits; raises ``OSError`` when it cannot be listed."""
    return walk_tree(base, parts, TreeBounds.for_skill(limits))


# -- hashes ------------------------------------------------------------------------------------------------------------


def digest_tree(files: Mapping[str, FileHash]) -> str:
    """Return the digest of a tree, in hex: the SHA-256 of one row for each file, in byte order of the paths.

    A row is ``path NUL x-or-- NUL size NUL sha256-hex LF``. NUL can be in no path, so no two trees have equal rows.
    """
    import hashlib

    total = hashlib.sha256()
    for path in sorted(files, key=str.encode):
        size, executable, content = files[path]
        total.update(b"%s\0%s\0%d\0%s\n" % (path.encode(), b"x" if executable else b"-", size, content.encode()))
    return total.hexdigest()


def digest_on_disk(files: Mapping[str, FileHash], *, has_bits: bool = HAS_EXECUTABLE_BITS) -> str:
    """Return the digest by which a tree is recognized on this disk: without executable bits where files have none."""
    return digest_tree(files if has_bits else {path: file._replace(executable=False) for path, file in files.items()})


def take_recorded_bits(
    found: dict[str, FileHash], recorded: Mapping[str, FileHash], *, has_bits: bool = HAS_EXECUTABLE_BITS
) -> dict[str, FileHash]:
    """Return what was found on the disk, with the executable bits of a lock file where files have none."""
    if has_bits:
        return found
    return {
        path: file._replace(executable=recorded[path].executable) if path in recorded else file
        for path, file in found.items()
    }


def as_recorded(found: dict[str, FileHash], recorded: Mapping[str, FileHash], folder: str) -> dict[str, FileHash]:
    """Return what was found in ``folder`` as a lock file records it, where this disk keeps names or bits otherwise."""
    return take_recorded_bits(with_recorded_names(found, recorded, folder), recorded)


def hash_bytes(content: bytes, *, executable: bool) -> FileHash:
    """Return what a lock file records of a file with this content."""
    import hashlib

    return FileHash(len(content), executable, hashlib.sha256(content).hexdigest())


def hash_files(files: Iterable[NewFile]) -> dict[str, FileHash]:
    """Return what a lock file records of files in memory, by their paths."""
    return {file.path: hash_bytes(file.content, executable=file.executable) for file in files}


def hash_file(base: str, parts: tuple[str, ...], limit: int) -> FileHash:
    """Return what a lock file records of a file below ``base``.

    Raises ``ResourceError`` when the file cannot be read, or has more than ``limit`` bytes.
    """
    with OpenFile(base, parts) as file:
        return _hash_open_file(file, limit)


def _hash_open_file(file: OpenFile, limit: int) -> FileHash:
    import hashlib

    size, content = 0, hashlib.sha256()
    for chunk in file.iter_all_chunks(limit):
        size += len(chunk)
        content.update(chunk)
    return FileHash(size, is_executable(file), content.hexdigest())


def hash_tree(folder: str, limits: Limits) -> HashedTree:
    """Hash every file of an installed tree; raises ``OSError`` when the folder cannot be listed.

    A file that cannot be read, or that does not fit into ``max_digest_bytes`` any more, becomes a problem.
    """
    from hashlib import sha256

    files: dict[str, FileHash] = {}
    refused: list[tuple[str, str]] = []
    left = limits.max_digest_bytes

    def hash_one(inner: Folder, name: str, path: str) -> None:
        nonlocal left
        # Fast path: most files of skills are small. A file that is not small and plain takes the slow way below, which
        # guards against special files and reads piece by piece.
        small_file = inner.read_small_file(name, min(left, _SMALL_FILE_BYTES))
        if small_file is not None:
            data, info = small_file
            left -= len(data)
            files[path] = FileHash(len(data), decide_executable(info.st_mode, data), sha256(data).hexdigest())
            return
        try:
            with inner.open_file(name, path) as file:
                files[path] = _hash_open_file(file, left)
        except ResourceTooLargeError:
            refused.append(("too-many-bytes", path))
        except ResourceError as error:
            refused.append((error.code, path))
        else:
            left -= files[path].size

    tree = walk_tree(folder, (), TreeBounds.for_install(limits), hash_one)
    return HashedTree(files, [*tree.problems, *refused])


def is_executable(file: OpenFile) -> bool:
    """Return whether the owner of an open file may execute it; a guess where files have no such bit."""
    return decide_executable(file.info.st_mode, b"" if HAS_EXECUTABLE_BITS else file.read(len(_SHEBANG)))


def decide_executable(mode: int, head: bytes, *, has_bits: bool = HAS_EXECUTABLE_BITS) -> bool:
    """Return whether a file counts as executable, by its mode, or by its first bytes where modes do not say so."""
    return bool(mode & stat.S_IXUSR) if has_bits else head.startswith(_SHEBANG)


def find_guesses(executable: Iterable[str], folder: str, *, has_bits: bool = HAS_EXECUTABLE_BITS) -> tuple[Issue, ...]:
    """Return an issue that names the files of a plain folder that count as executable only by their first bytes.

    ``executable`` are the paths of those that count as executable; where files have the bit, none of it is a guess.
    """
    paths = [] if has_bits else [*executable]
    if not paths:
        return ()
    names = f"{paths[0]} and {len(paths) - 1} more" if len(paths) > 1 else paths[0]
    message = f"taken for executable because of '#!', since this system does not keep that bit: {names}"
    return (Issue(GUESSED_CODE, "", message, folder, 0, "info"),)


def with_recorded_names(
    found: dict[str, FileHash], recorded: Mapping[str, FileHash], folder: str
) -> dict[str, FileHash]:
    """``found`` with the names of ``recorded`` for files of ``folder`` that are listed in another form of Unicode.

    macOS has disks that list an accent as a character of its own, and open the file by either name. Where the recorded
    name does not lead to the listed file, the two are different names, and ``found`` is returned as it is.
    """
    missing = [path for path in recorded.keys() - found.keys() if not path.isascii()]
    if not missing:
        return found
    from unicodedata import normalize

    listed = {normalize("NFC", path): path for path in found.keys() - recorded.keys()}
    names = {listed.get(normalize("NFC", path), ""): path for path in missing}
    return {
        names[path] if path in names and _is_one_file(folder, path, names[path]) else path: file
        for path, file in found.items()
    }


def _is_one_file(folder: str, first: str, second: str) -> bool:
    """Return whether two names in a folder are one file."""
    try:
        infos = [os.lstat(os.path.join(folder, *path.split("/"))) for path in (first, second)]
    except OSError:
        return False
    return os.path.samestat(*infos)


# -- bytes -------------------------------------------------------------------------------------------------------------


def read_tree(folder: str, limits: Limits) -> ReadTree:
    """Read a whole folder into memory, within the bounds of an install.

    Raises ``ResourceError`` when a file cannot be read, and ``OSError`` when the folder cannot be listed.
    """
    files: list[tuple[str, bytes, bool]] = []
    left = limits.max_install_bytes

    def read_one(inner: Folder, name: str, path: str) -> None:
        nonlocal left
        with inner.open_file(name, path) as file:
            data = file.read_all(left)
        left -= len(data)
        files.append((path, data, decide_executable(file.info.st_mode, data)))

    tree = walk_tree(folder, (), TreeBounds.for_install(limits), read_one)
    # A checkout has a ".git" of its own. A name that only some file systems take for it was put there to mislead.
    disguised = [("unsafe-name", path) for path in tree.git_names if path.rpartition("/")[2].lower() != ".git"]
    return ReadTree(sorted(files, key=lambda file: file[0].encode()), [*tree.problems, *disguised])
