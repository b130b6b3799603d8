"""Reads the files of a commit out of git's objects, without a working tree: nothing is checked out, nothing runs.

``git cat-file --batch`` prints the objects. Folders are parsed here, entry by entry, so that every name and mode is
checked before anything is used.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import GitError, UnsafeTreeError
from prowess.limits import MIB
from prowess.names import MAX_PATH_CHARS, is_git_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prowess.limits import Limits

# Old repositories have files with the mode 100664.
_FILE_MODES = {"100644": False, "100755": True, "100664": False}
"""The kinds of entries that are files, and whether they are executable."""
_FOLDER_MODE = "40000"
_UNSUPPORTED_MODES = {"120000": "link-in-skill", "160000": "submodule"}
_MAX_DEPTH = 64  # of folders, and of tags that lead to tags: a hostile repository may nest them without end
_LIST_ALL_OBJECTS = ("cat-file", "--batch-all-objects", "--unordered")
_BATCH_BYTES = 16 * MIB  # printed and parsed objects are in memory at once, so larger repositories are read singly


class GitFile(NamedTuple):
    """A file of a commit: its path, the id of the object with its bytes, and whether it is executable."""

    path: str
    object_id: str
    executable: bool


class CommitListing(NamedTuple):
    """Every file of a commit, and the entries that are not supported: ``(code, path)`` each."""

    files: list[GitFile]
    unsupported: list[tuple[str, str]]


class GitObjects:
    """Objects of git, kind and bytes by id: those given at first, and those of repositories added since."""

    def __init__(self, known: Mapping[str, tuple[str, bytes]] | None = None) -> None:
        self.loaded = dict(known or {})
        """The objects whose bytes are in memory."""
        self._sizes: dict[str, tuple[str, int]] = {}
        self._run: Callable[..., bytes] | None = None

    def add_repository(self, run: Callable[..., bytes]) -> None:
        """Add the objects of the repository that ``run`` calls git in.

        A small repository is read by one call. The objects of a large one are read singly, when they are needed.
        """
        self._run = run
        try:
            self.loaded |= _parse_objects(run(*_LIST_ALL_OBJECTS, "--batch", printed=_BATCH_BYTES))
        except GitError as error:
            if error.code != "too-many-bytes":
                raise
            self._sizes |= _parse_sizes(run(*_LIST_ALL_OBJECTS, "--batch-check", printed=_BATCH_BYTES))

    def find_commit(self, name: str) -> str:
        """Return the id of the commit that ``name`` means: a commit itself, or the one that a tag leads to."""
        for _ in range(_MAX_DEPTH):
            kind, data = self.get_object(name)
            if kind == "commit":
                return name
            if kind != "tag":
                raise GitError(f"the version is a {kind}, not a commit", code="unknown-version")
            name = _read_field(data, b"object")
        raise GitError("the tag leads to too many tags", code="unknown-version")

    def commit_date(self, commit: str) -> datetime | None:
        """Return when a commit was made, by its committer's clock, in UTC; ``None`` when the date is malformed."""
        committer = _read_field(self.get_object(commit)[1], b"committer")
        try:
            return datetime.fromtimestamp(int(committer.split(" ")[-2]), UTC)
        except (ValueError, IndexError, OverflowError, OSError):
            return None

    def file_size(self, name: str) -> int | None:
        """Return how many bytes a file has, or ``None`` when the server left it out."""
        if name in self.loaded:
            return len(self.loaded[name][1])
        return self._sizes[name][1] if name in self._sizes else None

    def list_files(self, commit: str, limits: Limits) -> CommitListing:
        """Return every file of a commit.

        Raises ``GitError`` when an object is missing or damaged, and ``UnsafeTreeError`` for folders that are too deep
        or have too many entries.
        """
        kind, data = self.get_object(commit)
        if kind != "commit":
            raise GitError(f"{commit} is a {kind}, not a commit", code="unknown-version")
        walk = _CommitWalk(self, limits.max_tree_entries)
        walk.walk_folder(_read_field(data, b"tree"), "", 1)
        return walk.listing

    def get_object(self, name: str) -> tuple[str, bytes]:
        """Return the kind and the bytes of an object; raises ``GitError`` when it is not here."""
        loaded = self.loaded.get(name)
        if loaded is not None:
            return loaded
        if name not in self._sizes or self._run is None:
            raise GitError(f"the repository did not send the object {name[:64]!a}")
        kind = self._sizes[name][0]
        data = self._run("cat-file", kind, name)
        if kind != "blob":  # folders and commits are small, and needed more than once
            self.loaded[name] = (kind, data)
        return kind, data


class _CommitWalk:
    """One walk through the folders of a commit."""

    def __init__(self, objects: GitObjects, max_entries: int) -> None:
        self.listing = CommitListing([], [])
        self._objects = objects
        self._entries_left = max_entries

    def walk_folder(self, tree: str, prefix: str, depth: int) -> None:
        """Add the entries of the folder with the id ``tree``, whose path is ``prefix``, and of those below it."""
        kind, data = self._objects.get_object(tree)
        if kind != "tree" or depth > _MAX_DEPTH or len(prefix) > MAX_PATH_CHARS:
            raise UnsafeTreeError(f"the repository's folders cannot be read below {prefix[:200]!r}", code="too-deep")
        for entry in _parse_tree(data, len(tree) // 2):  # an id is written with two digits for each byte
            # Counted over the whole commit: folders may share one id, and a small repository unfold to millions.
            self._entries_left -= 1
            if self._entries_left < 0:
                raise UnsafeTreeError("the repository has too many entries", code="too-many-files")
            self._add_entry(entry, prefix, depth)

    def _add_entry(self, entry: tuple[str, bytes, str], prefix: str, depth: int) -> None:
        mode, raw_name, object_id = entry
        unsupported = self.listing.unsupported
        try:
            name = raw_name.decode("utf-8")
        except UnicodeDecodeError:
            unsupported.append(("bad-file-name", prefix + ascii(raw_name)))
            return
        path = prefix + name
        if mode in _UNSUPPORTED_MODES or (mode not in _FILE_MODES and mode != _FOLDER_MODE):
            unsupported.append((_UNSUPPORTED_MODES.get(mode, "special-file"), path))
        # Git itself writes no such name, but a server may send one.
        elif name in {"", ".", ".."} or "/" in name or "\\" in name or is_git_name(name):
            unsupported.append(("unsafe-name", path))
        elif mode == _FOLDER_MODE:
            self.walk_folder(object_id, f"{path}/", depth + 1)
        else:
            self.listing.files.append(GitFile(path, object_id, _FILE_MODES[mode]))


def dump_objects(objects: Mapping[str, tuple[str, bytes]]) -> bytes:
    """Return objects as ``git cat-file --batch`` prints them."""
    return b"".join(
        b"%s %s %d\n%s\n" % (name.encode(), kind.encode(), len(data), data) for name, (kind, data) in objects.items()
    )


def load_objects(dumped: bytes) -> dict[str, tuple[str, bytes]]:
    """Return the objects of a dump; raises ``GitError`` when it is damaged, or when an object does not match its id."""
    try:
        objects = dict(_parse_objects(dumped))
    except ValueError:  # an id that is not ASCII, or a size of thousands of digits
        raise GitError("what was kept of a repository is malformed") from None
    # The cache is a folder of the user's: what is in it is believed only as far as its hash proves it.
    for name, (kind, data) in objects.items():
        if _hash_object(kind, data, len(name)) != name:
            raise GitError(f"an object is not what its id {name!a} says")
    return objects


def _hash_object(kind: str, data: bytes, chars: int) -> str:
    """Return the id that git gives to an object. Git uses SHA-256 for ids of 64 characters, and else SHA-1."""
    hashed = hashlib.sha256() if chars == 64 else hashlib.sha1(usedforsecurity=False)  # noqa: PLR2004 - SHA-256 ids
    hashed.update(b"%s %d\0" % (kind.encode(), len(data)))
    hashed.update(data)
    return hashed.hexdigest()


def _parse_objects(printed: bytes) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """Yield id, kind and bytes of each object that ``git cat-file --batch`` printed."""
    start = 0
    while start < len(printed):
        end = printed.find(b"\n", start)
        head = printed[start:end].split(b" ") if end > 0 else []
        if len(head) != 3 or not head[2].isdigit():  # noqa: PLR2004 - id, kind, size
            raise GitError("git printed something that is not an object")
        size = int(head[2])
        yield head[0].decode("ascii"), (head[1].decode("ascii"), printed[end + 1 : end + 1 + size])
        start = end + size + 2


def _parse_sizes(printed: bytes) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield id, kind and size of each object that ``git cat-file --batch-check`` printed."""
    for line in printed.splitlines():
        name, kind, size = line.decode("ascii").split(" ")
        yield name, (kind, int(size))


def _read_field(data: bytes, key: bytes) -> str:
    """Return a field of the head of a commit or a tag; raises ``GitError`` when it is missing."""
    for line in data.split(b"\n\n", 1)[0].split(b"\n"):
        if line.startswith(key + b" "):
            return line[len(key) + 1 :].decode("ascii", "replace")
    raise GitError("the repository sent a malformed object")


def _parse_tree(data: bytes, width: int) -> Iterator[tuple[str, bytes, str]]:
    """Yield mode, name and id of each entry of a folder; an id has ``width`` bytes."""
    start = 0
    while start < len(data):
        space, end = data.find(b" ", start), data.find(b"\0", start)
        if not start < space < end or end + width >= len(data) + 1:
            raise GitError("the repository sent a malformed folder")
        mode = data[start:space].decode("ascii", "replace").lstrip("0")
        yield mode, data[space + 1 : end], data[end + 1 : end + 1 + width].hex()
        start = end + 1 + width
