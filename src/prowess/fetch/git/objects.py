"""A commit's files out of git's object database, without a working tree: nothing is checked out, nothing runs.

``cat-file --batch`` prints every object; folders are read here, entry by entry, and judged by us.
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

_FILE_MODES = {"100644": False, "100755": True, "100664": False}
"""The kinds of entries that are files, and whether they are executable."""
_FOLDER_MODE = "40000"
_UNSUPPORTED_MODES = {"120000": "link-in-skill", "160000": "submodule"}
_MAX_DEPTH = 64
_LIST_ALL_OBJECTS = ("cat-file", "--batch-all-objects", "--unordered")
_BATCH_BYTES = 16 * MIB  # what is held in memory twice for a moment


class GitFile(NamedTuple):
    """A file of a commit: where it lies, the object with its bytes, whether it is executable."""

    path: str
    object_id: str
    executable: bool


class CommitListing(NamedTuple):
    """Every file of a commit, and what else was met: ``(code, path)``."""

    files: list[GitFile]
    unsupported: list[tuple[str, str]]


class GitObjects:
    """The objects that are here, kind and bytes by id: those given at first, and those of repositories added since."""

    def __init__(self, known: Mapping[str, tuple[str, bytes]] | None = None) -> None:
        self._found = dict(known or {})
        self._sizes: dict[str, tuple[str, int]] = {}
        self._run: Callable[..., bytes] | None = None

    def add_repository(self, run: Callable[..., bytes]) -> None:
        """Take the objects of a repository in, in which ``run`` calls git.

        All of them come by one call where they are few; else each by a call of its own, when it is asked for.
        """
        self._run = run
        try:
            self._found |= _parse_objects(run(*_LIST_ALL_OBJECTS, "--batch", printed=_BATCH_BYTES))
        except GitError as error:
            if error.code != "too-many-bytes":
                raise
            self._sizes |= _parse_sizes(run(*_LIST_ALL_OBJECTS, "--batch-check", printed=_BATCH_BYTES))

    def loaded_objects(self) -> Mapping[str, tuple[str, bytes]]:
        """The objects whose bytes are at hand."""
        return self._found

    def find_commit(self, name: str) -> str:
        """The commit that an id means: itself, or what a tag leads to."""
        for _ in range(_MAX_DEPTH):
            kind, data = self._get_object(name)
            if kind == "commit":
                return name
            if kind != "tag":
                raise GitError(f"the version is a {kind}, not a commit", code="unknown-version")
            name = _read_field(data, b"object")
        raise GitError("the tag leads to too many tags", code="unknown-version")

    def commit_date(self, commit: str) -> datetime | None:
        """When a commit was made, as its committer says, in UTC; ``None`` where that makes no sense."""
        row = _read_field(self._get_object(commit)[1], b"committer")
        try:
            return datetime.fromtimestamp(int(row.split(" ")[-2]), UTC)
        except (ValueError, IndexError, OverflowError, OSError):
            return None

    def file_size(self, name: str) -> int | None:
        """How many bytes a file has, or ``None`` when the server left it out."""
        if name in self._found:
            return len(self._found[name][1])
        return self._sizes[name][1] if name in self._sizes else None

    def read_blob(self, name: str) -> bytes:
        """The bytes of a file that is there."""
        return self._get_object(name)[1]

    def list_files(self, commit: str, limits: Limits) -> CommitListing:
        """Every file of a commit."""
        found = CommitListing([], [])
        kind, data = self._get_object(commit)
        if kind != "commit":
            raise GitError(f"{commit} is a {kind}, not a commit", code="unknown-version")
        left = [limits.max_tree_entries]
        self._walk_tree(_read_field(data, b"tree"), "", (found, left), 1)
        return found

    def _get_object(self, name: str) -> tuple[str, bytes]:
        found = self._found.get(name)
        if found is not None:
            return found
        if name not in self._sizes or self._run is None:
            raise GitError(f"the repository did not send the object {name[:64]!a}")
        kind = self._sizes[name][0]
        data = self._run("cat-file", kind, name)
        if kind != "blob":  # few bytes, asked for more than once
            self._found[name] = (kind, data)
        return kind, data

    def _walk_tree(self, tree: str, prefix: str, into: tuple[CommitListing, list[int]], depth: int) -> None:
        _, left = into
        kind, data = self._get_object(tree)
        if kind != "tree" or depth > _MAX_DEPTH or len(prefix) > MAX_PATH_CHARS:
            raise UnsafeTreeError(f"the repository's folders cannot be read below {prefix[:200]!r}", code="too-deep")
        for mode, raw, name in _parse_tree(data, len(tree) // 2):  # the bytes of an id, which is written in hexadecimal
            left[0] -= 1
            if left[0] < 0:
                raise UnsafeTreeError("the repository has too many entries", code="too-many-files")
            self._add_entry(mode, raw, (prefix, name), into, depth)

    def _add_entry(
        self, mode: str, raw: bytes, at: tuple[str, str], into: tuple[CommitListing, list[int]], depth: int
    ) -> None:
        found, _ = into
        prefix, name = at
        try:
            path = prefix + raw.decode("utf-8")
        except UnicodeDecodeError:
            found.unsupported.append(("bad-file-name", prefix + ascii(raw)))
            return
        if mode in _UNSUPPORTED_MODES or (mode not in _FILE_MODES and mode != _FOLDER_MODE):
            found.unsupported.append((_UNSUPPORTED_MODES.get(mode, "special-file"), path))
        elif not _is_valid_name(raw) or is_git_name(raw.decode("utf-8")):
            found.unsupported.append(("unsafe-name", path))
        elif mode == _FOLDER_MODE:
            self._walk_tree(name, f"{path}/", into, depth + 1)
        else:
            found.files.append(GitFile(path, name, _FILE_MODES[mode]))


def _is_valid_name(raw: bytes) -> bool:
    """Whether a name in a folder is one: git itself writes no other, but a server may."""
    return raw not in {b"", b".", b".."} and b"/" not in raw and b"\\" not in raw


def dump_objects(objects: Mapping[str, tuple[str, bytes]]) -> bytes:
    """Objects as ``cat-file --batch`` prints them."""
    return b"".join(
        b"%s %s %d\n%s\n" % (name.encode(), kind.encode(), len(data), data) for name, (kind, data) in objects.items()
    )


def load_objects(dumped: bytes) -> dict[str, tuple[str, bytes]]:
    """The objects of a dump; ``GitError`` when it makes no sense, or when one of them is not what its id says."""
    try:
        objects = dict(_parse_objects(dumped))
    except ValueError:  # no ASCII, or a number of thousands of digits
        raise GitError("what was kept of a repository makes no sense") from None
    for name, (kind, data) in objects.items():
        if _hash_object(kind, data, len(name)) != name:
            raise GitError(f"an object is not what its id {name!a} says")
    return objects


def _hash_object(kind: str, data: bytes, chars: int) -> str:
    """The id that git gives to an object; of so many characters, which tell how it hashes."""
    hashed = hashlib.sha256() if chars == 64 else hashlib.sha1(usedforsecurity=False)  # noqa: PLR2004 - SHA-256 ids
    hashed.update(b"%s %d\0" % (kind.encode(), len(data)))
    hashed.update(data)
    return hashed.hexdigest()


def _parse_objects(printed: bytes) -> Iterator[tuple[str, tuple[str, bytes]]]:
    at = 0
    while at < len(printed):
        end = printed.find(b"\n", at)
        head = printed[at:end].split(b" ") if end > 0 else []
        if len(head) != 3 or not head[2].isdigit():  # noqa: PLR2004 - id, kind, size
            raise GitError("git printed something that is no object")
        size = int(head[2])
        yield head[0].decode("ascii"), (head[1].decode("ascii"), printed[end + 1 : end + 1 + size])
        at = end + size + 2


def _parse_sizes(printed: bytes) -> Iterator[tuple[str, tuple[str, int]]]:
    for row in printed.splitlines():
        name, kind, size = row.decode("ascii").split(" ")
        yield name, (kind, int(size))


def _read_field(data: bytes, key: bytes) -> str:
    for row in data.split(b"\n\n", 1)[0].split(b"\n"):
        if row.startswith(key + b" "):
            return row[len(key) + 1 :].decode("ascii", "replace")
    raise GitError("the repository sent an object that makes no sense")


def _parse_tree(data: bytes, width: int) -> Iterator[tuple[str, bytes, str]]:
    """Mode, name and id of each entry of a folder."""
    at = 0
    while at < len(data):
        blank, end = data.find(b" ", at), data.find(b"\0", at)
        if not at < blank < end or end + width >= len(data) + 1:
            raise GitError("the repository sent a folder that makes no sense")
        mode = data[at:blank].decode("ascii", "replace").lstrip("0")
        yield mode, data[blank + 1 : end], data[end + 1 : end + 1 + width].hex()
        at = end + 1 + width
