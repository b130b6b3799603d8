"""A commit's files out of git's object database, without a working tree: nothing is checked out, nothing runs.

``cat-file --batch`` prints every object; folders are read here, entry by entry, and judged by us.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import GitError, UnsafeTreeError
from prowess.limits import MIB
from prowess.names import MAX_PATH_CHARS, is_git_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.limits import Limits

_MODES = {"100644": False, "100755": True, "100664": False}
"""The kinds of entries that are files, and whether they are executable."""
_FOLDER = "40000"
_ODD = {"120000": "link-in-skill", "160000": "submodule"}
_DEEPEST = 64
_ALL = ("cat-file", "--batch-all-objects", "--unordered")
_AT_ONCE = 16 * MIB  # what is held in memory twice for a moment


class Entry(NamedTuple):
    """A file of a commit: where it lies, the object with its bytes, whether it is executable."""

    path: str
    object: str
    executable: bool


class Listing(NamedTuple):
    """Every file of a commit, and what else was met: ``(code, path)``."""

    files: list[Entry]
    odd: list[tuple[str, str]]


class Objects:
    """The objects of a repository: kind and bytes by id. ``run`` calls git there.

    All of them come by one call where they are few; else each by a call of its own, when it is asked for.
    """

    def __init__(self, run: Callable[..., bytes]) -> None:
        self._run = run
        self._found: dict[str, tuple[str, bytes]] = {}
        self._sizes: dict[str, tuple[str, int]] = {}
        try:
            self._found = dict(_objects(run(*_ALL, "--batch", printed=_AT_ONCE)))
        except GitError as error:
            if error.code != "too-many-bytes":
                raise
            self._sizes = dict(_sizes(run(*_ALL, "--batch-check", printed=_AT_ONCE)))
        names = self._found or self._sizes
        self._width = 32 if any(len(name) == 64 for name in names) else 20  # noqa: PLR2004 - SHA-256 ids

    def commit(self, name: str) -> str:
        """The commit that an id means: itself, or what a tag leads to."""
        for _ in range(_DEEPEST):
            kind, data = self._get(name)
            if kind == "commit":
                return name
            if kind != "tag":
                raise GitError(f"the version is a {kind}, not a commit", code="unknown-version")
            name = _field(data, b"object")
        raise GitError("the tag leads to too many tags", code="unknown-version")

    def date(self, commit: str) -> datetime | None:
        """When a commit was made, as its committer says, in UTC; ``None`` where that makes no sense."""
        row = _field(self._get(commit)[1], b"committer")
        try:
            return datetime.fromtimestamp(int(row.split(" ")[-2]), UTC)
        except (ValueError, IndexError, OverflowError, OSError):
            return None

    def size(self, name: str) -> int | None:
        """How many bytes a file has, or ``None`` when the server left it out."""
        if name in self._found:
            return len(self._found[name][1])
        return self._sizes[name][1] if name in self._sizes else None

    def blob(self, name: str) -> bytes:
        """The bytes of a file that is there."""
        return self._get(name)[1]

    def listing(self, commit: str, limits: Limits) -> Listing:
        """Every file of a commit."""
        found = Listing([], [])
        kind, data = self._get(commit)
        if kind != "commit":
            raise GitError(f"{commit} is a {kind}, not a commit", code="unknown-version")
        left = [limits.max_tree_entries]
        self._walk(_field(data, b"tree"), "", (found, left), 1)
        return found

    def _get(self, name: str) -> tuple[str, bytes]:
        found = self._found.get(name)
        if found is not None:
            return found
        if name not in self._sizes:
            raise GitError(f"the repository did not send the object {name[:64]!a}")
        kind = self._sizes[name][0]
        return kind, self._run("cat-file", kind, name)

    def _walk(self, tree: str, prefix: str, into: tuple[Listing, list[int]], depth: int) -> None:
        _, left = into
        kind, data = self._get(tree)
        if kind != "tree" or depth > _DEEPEST or len(prefix) > MAX_PATH_CHARS:
            raise UnsafeTreeError(f"the repository's folders cannot be read below {prefix[:200]!r}", code="too-deep")
        for mode, raw, name in _entries(data, self._width):
            left[0] -= 1
            if left[0] < 0:
                raise UnsafeTreeError("the repository has too many entries", code="too-many-files")
            self._entry(mode, raw, (prefix, name), into, depth)

    def _entry(self, mode: str, raw: bytes, at: tuple[str, str], into: tuple[Listing, list[int]], depth: int) -> None:
        found, _ = into
        prefix, name = at
        try:
            path = prefix + raw.decode("utf-8")
        except UnicodeDecodeError:
            found.odd.append(("bad-file-name", prefix + ascii(raw)))
            return
        if mode in _ODD or (mode not in _MODES and mode != _FOLDER):
            found.odd.append((_ODD.get(mode, "special-file"), path))
        elif not _is_name(raw) or is_git_name(raw.decode("utf-8")):
            found.odd.append(("unsafe-name", path))
        elif mode == _FOLDER:
            self._walk(name, f"{path}/", into, depth + 1)
        else:
            found.files.append(Entry(path, name, _MODES[mode]))


def _is_name(raw: bytes) -> bool:
    """Whether a name in a folder is one: git itself writes no other, but a server may."""
    return raw not in {b"", b".", b".."} and b"/" not in raw and b"\\" not in raw


def _objects(printed: bytes) -> Iterator[tuple[str, tuple[str, bytes]]]:
    at = 0
    while at < len(printed):
        end = printed.find(b"\n", at)
        head = printed[at:end].split(b" ") if end > 0 else []
        if len(head) != 3 or not head[2].isdigit():  # noqa: PLR2004 - id, kind, size
            raise GitError("git printed something that is no object")
        size = int(head[2])
        yield head[0].decode("ascii"), (head[1].decode("ascii"), printed[end + 1 : end + 1 + size])
        at = end + size + 2


def _sizes(printed: bytes) -> Iterator[tuple[str, tuple[str, int]]]:
    for row in printed.splitlines():
        name, kind, size = row.decode("ascii").split(" ")
        yield name, (kind, int(size))


def _field(data: bytes, key: bytes) -> str:
    for row in data.split(b"\n\n", 1)[0].split(b"\n"):
        if row.startswith(key + b" "):
            return row[len(key) + 1 :].decode("ascii", "replace")
    raise GitError("the repository sent an object that makes no sense")


def _entries(data: bytes, width: int) -> Iterator[tuple[str, bytes, str]]:
    """Mode, name and id of each entry of a folder."""
    at = 0
    while at < len(data):
        blank, end = data.find(b" ", at), data.find(b"\0", at)
        if not at < blank < end or end + width >= len(data) + 1:
            raise GitError("the repository sent a folder that makes no sense")
        mode = data[at:blank].decode("ascii", "replace").lstrip("0")
        yield mode, data[blank + 1 : end], data[end + 1 : end + 1 + width].hex()
        at = end + 1 + width
