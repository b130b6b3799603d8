"""A whole tree of files: walked without following a link, listed, hashed, read into memory, and its one digest.

Every walk of a skill's folder is ``walk_tree``, and every digest of a skill is ``digest_tree``. Other walks do
something else and stay by themselves: ``discovery/walk.py`` looks for skills and reads only heads, ``marks.tree_mark``
watches folders of any size by the clock, ``removing`` deletes what it meets, and ``sync_tree`` and ``folder_size`` go
through folders that this process itself has just made.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import ResourceError, ResourceTooLargeError
from prowess.files.directory import is_utf8_name, open_folder_beneath
from prowess.files.read import OpenFile
from prowess.names import is_git_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prowess.files.directory import Folder
    from prowess.limits import Limits

    Visit = Callable[[Folder, str, str], None]
    """Called for each regular file with its open folder, its name there, and its path from the top of the tree."""

EXTRA_DEPTH = 8
"""How many folders deeper than one skill a tree of several skills may be."""
_SMALL_FILE_BYTES = 1 << 20


class TreeBounds(NamedTuple):
    """How much of a tree is walked. A small tuple: copying ``Limits`` for each tree costs more than a small walk."""

    files: int
    entries: int
    depth: int
    """How many folders deep, the topmost one counted."""

    @classmethod
    def for_skill(cls, limits: Limits) -> TreeBounds:
        """The bounds of one skill."""
        return cls(limits.max_files_per_skill, limits.max_entries_per_skill, limits.max_depth_per_skill)

    @classmethod
    def for_install(cls, limits: Limits) -> TreeBounds:
        """The bounds of a tree that may hold many skills: more files and deeper folders than one of them."""
        most = max(limits.max_files_per_skill, limits.max_install_files)
        return cls(most, max(limits.max_entries_per_skill, 4 * most), limits.max_depth_per_skill + EXTRA_DEPTH + 1)


class TreeListing(NamedTuple):
    """Every regular file below a folder, in byte order of its POSIX path, and what else was met."""

    files: list[str]
    links: list[str]
    others: list[str]
    bad_names: list[str]
    unreadable: list[str]
    git_names: list[str]
    """What a file system takes for ``.git``: left out everywhere else."""
    bound: str = ""
    """Which limit ended the walk, or ``""``."""
    bound_at: str = ""
    """The folder at which it ended."""

    @property
    def problems(self) -> list[tuple[str, str]]:
        """What keeps the tree from being regular files alone, or from being whole: ``(code, path)``."""
        kinds = (
            ("link-in-skill", self.links),
            ("special-file", self.others),
            ("bad-file-name", self.bad_names),
            ("unreadable-directory", self.unreadable),
        )
        found = [(code, path) for code, paths in kinds for path in paths]
        return [*found, (self.bound, self.bound_at)] if self.bound else found


class FileHash(NamedTuple):
    """What a lock file says of a file: its size, whether its owner may execute it, and its SHA-256 (hex)."""

    size: int
    executable: bool
    sha256: str


class HashedTree(NamedTuple):
    """Every regular file below a folder with its hash, and what else was met: ``(code, path)``."""

    files: dict[str, FileHash]
    problems: list[tuple[str, str]]


class ReadTree(NamedTuple):
    """Every regular file below a folder: path, bytes, whether executable; and what else was met: ``(code, path)``."""

    files: list[tuple[str, bytes, bool]]
    problems: list[tuple[str, str]]


class _TreeWalk:
    """One walk by folder handles: nothing on the way can be swapped for a link."""

    def __init__(self, bounds: TreeBounds, visit: Visit | None) -> None:
        self.bounds = bounds
        self.visit = visit
        self.tree = TreeListing([], [], [], [], [], [])
        self.entries_left = bounds.entries
        self.bound = ("", "")

    def walk_folder(self, folder: Folder, prefix: str, depth: int) -> None:
        """Raises ``OSError`` when the topmost folder cannot be listed."""
        files: list[str] = []
        folders: list[str] = []
        try:
            self._list_folder(folder, prefix, files, folders)
        except OSError:
            if depth == 1:
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

        Fast path: ``Folder.entries`` would do it with five lists and as many sorts for each folder, which makes
        verifying small installs half as slow again.
        """
        with folder.scan_entries() as entries:
            for entry in entries:
                self.entries_left -= 1
                if self.entries_left < 0:
                    self.bound = ("too-many-files", prefix[:-1])
                    return
                name = entry.name
                if is_git_name(name):
                    self.tree.git_names.append(prefix + name)
                elif not name.isascii() and not is_utf8_name(name):
                    self.tree.bad_names.append(prefix + ascii(name))
                elif entry.is_file(follow_symlinks=False):
                    files.append(name)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                else:
                    (self.tree.links if entry.is_symlink() else self.tree.others).append(prefix + name)

    def _add_files(self, folder: Folder, names: list[str], prefix: str) -> None:
        names.sort()  # so that a bound ends the walk at the same file everywhere
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
    """Every file of the folder ``parts`` below ``base``, within the bounds; ``.git`` is left out (``is_git_name``).

    Links and special files are named and never opened. ``visit`` is called for each file while its folder is open, for
    no more files than the bounds allow; what it raises ends the walk. Raises ``OSError`` when the folder cannot be
    listed.
    """
    walk = _TreeWalk(bounds, visit)
    with open_folder_beneath(base, parts) as folder:
        walk.walk_folder(folder, "", 1)
    tree = walk.tree
    tree.files.sort(key=str.encode)
    for group in (tree.links, tree.others, tree.bad_names, tree.git_names):
        group.sort()
    return tree._replace(bound=walk.bound[0], bound_at=walk.bound[1]) if walk.bound[0] else tree


def list_tree(base: str, parts: tuple[str, ...], limits: Limits) -> TreeListing:
    """Every file of one skill's folder, within its limits; raises ``OSError`` when it cannot be listed."""
    return walk_tree(base, parts, TreeBounds.for_skill(limits))


# -- hashes ------------------------------------------------------------------------------------------------------------


def digest_tree(files: Mapping[str, FileHash]) -> str:
    """The digest of a tree: SHA-256 over ``path NUL x-or-- NUL size NUL sha256-hex LF``, in byte order of the paths."""
    import hashlib  # noqa: PLC0415 - discovery hashes nothing

    total = hashlib.sha256()
    for path in sorted(files, key=str.encode):
        size, executable, content = files[path]
        total.update(b"%s\0%s\0%d\0%s\n" % (path.encode(), b"x" if executable else b"-", size, content.encode()))
    return total.hexdigest()


def hash_bytes(content: bytes, *, executable: bool) -> FileHash:
    """What a lock file says of a file with this content."""
    import hashlib  # noqa: PLC0415 - discovery hashes nothing

    return FileHash(len(content), executable, hashlib.sha256(content).hexdigest())


def hash_file(base: str, parts: tuple[str, ...], limit: int) -> FileHash:
    """What a lock file says of a file below ``base``; raises ``ResourceError`` as ``OpenFile`` does."""
    with OpenFile(base, parts) as file:
        return _hash_open_file(file, limit)


def _hash_open_file(file: OpenFile, limit: int) -> FileHash:
    import hashlib  # noqa: PLC0415 - discovery hashes nothing

    size, content = 0, hashlib.sha256()
    for chunk in file.iter_all_chunks(limit):
        size += len(chunk)
        content.update(chunk)
    return FileHash(size, is_executable(file), content.hexdigest())


def hash_tree(folder: str, limits: Limits) -> HashedTree:
    """Every file of an installed tree, hashed. Raises ``OSError`` when the folder cannot be listed."""
    from hashlib import sha256  # noqa: PLC0415 - discovery hashes nothing

    files: dict[str, FileHash] = {}
    refused: list[tuple[str, str]] = []
    left = limits.max_digest_bytes

    def hash_one(inner: Folder, name: str, path: str) -> None:
        nonlocal left
        plain = inner.read_small_file(name, min(left, _SMALL_FILE_BYTES))
        if plain is not None:
            data, info = plain
            left -= len(data)
            files[path] = FileHash(len(data), bool(info.st_mode & stat.S_IXUSR), sha256(data).hexdigest())
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
    """Whether the owner of an open file may execute it."""
    return bool(file.info.st_mode & stat.S_IXUSR)


# -- bytes -------------------------------------------------------------------------------------------------------------


def read_tree(folder: str, limits: Limits) -> ReadTree:
    """A whole folder in memory, within the bounds of an install.

    Raises ``ResourceError`` for a file that cannot be read, ``OSError`` when the folder cannot be listed.
    """
    files: list[tuple[str, bytes, bool]] = []
    left = limits.max_install_bytes

    def read_one(inner: Folder, name: str, path: str) -> None:
        nonlocal left
        with inner.open_file(name, path) as file:
            data = file.read_all(left)
            left -= len(data)
            files.append((path, data, is_executable(file)))

    tree = walk_tree(folder, (), TreeBounds.for_install(limits), read_one)
    # A checkout has a ".git" of its own. What only looks like one to some file system was put there to mislead.
    disguised = [("unsafe-name", path) for path in tree.git_names if path.rpartition("/")[2].lower() != ".git"]
    return ReadTree(sorted(files, key=lambda row: row[0].encode()), [*tree.problems, *disguised])
