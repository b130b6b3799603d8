"""The files of one skill of an MCP server: read when they are asked for, proved each time, kept in memory only."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from prowess.errors import FetchError, Issue, ResourceNotFoundError
from prowess.files.write import NewFile
from prowess.sources.mcp.entry import SKILL_MD, parse_entry
from prowess.spec.frontmatter.json_types import differing_fields, styled_frontmatter
from prowess.spec.hidden_characters import one_line
from prowess.spec.rules import INERT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.sources.mcp.approvals import Approvals
    from prowess.sources.mcp.connection import Link, Server
    from prowess.sources.mcp.entry import Entry
    from prowess.spec.frontmatter.fields import Frontmatter

_WIDENING = frozenset(
    key.lower().replace("-", "").replace("_", "")
    for key in (*INERT, "agent", "allowed-tools", "background", "context", "effort", "permission-mode", "tools")
)
"""Fields that ask for more than to be read, however they are spelled."""


_MAY_HAVE_CHANGED = frozenset(("digest-mismatch", "request-refused"))
_LONGEST_CHANGES = 400


class Kept:
    """Files that were read and proved right, by digest; the oldest go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._files: dict[str, bytes] = {}
        self._size = 0
        self._lock = Lock()

    def get(self, digest: str) -> bytes | None:
        return self._files.get(digest)

    def add(self, digest: str, data: bytes) -> None:
        with self._lock:
            if digest in self._files or len(data) > self._most:
                return
            self._files[digest] = data
            self._size += len(data)
            while self._size > self._most:
                oldest = next(iter(self._files))
                self._size -= len(self._files.pop(oldest))


class Announcement:
    """What a server has last announced of one skill: shared by all contents of that skill, whichever asked."""

    __slots__ = ("entry",)

    def __init__(self, entry: Entry) -> None:
        self.entry = entry


class McpContents:
    """The files of one skill of a server, as one entry of it lists them: one state, which never becomes another.

    When a file is not what was announced, the server is asked for the entry again. If that is another, the skill has
    changed: whoever loads it gets contents of the new entry, and these here keep to the old one, so that no file of the
    new set stands beside instructions of the old one. A person who approves a skill approves what they have seen of it.
    """

    def __init__(
        self,
        entry: Entry,
        link: Link,
        *,
        kept: Kept,
        approvals: Approvals | None,
        announcement: Announcement | None = None,
        changes: str = "",
    ) -> None:
        self._entry = entry
        self._link = link
        self._kept = kept
        self._approvals = approvals
        self._announcement = announcement or Announcement(entry)
        self._changes = changes

    @property
    def server(self) -> Server:
        """What it is read from."""
        return self._link.server

    @property
    def location(self) -> str:
        """The label and the address: together they are what the skill is known by."""
        return f"mcp:{self.server.label}:{self._entry.uri}"

    @property
    def state(self) -> str:
        return self._entry.state

    @property
    def told_by(self) -> str:
        """Who says what is in it, for models."""
        return f"the MCP server {self.server.label!r}"

    def names(self) -> tuple[str, ...] | None:
        return self.files()

    def files(self) -> tuple[str, ...]:
        return tuple(self._entry.files)

    def read(self, path: str) -> bytes:
        """The bytes of a file; raises ``FetchError`` (``changed-on-server``) where the skill has changed since."""
        try:
            return self._read(path)
        except FetchError as error:
            changes = _describe_changes(self._entry, self._ask_again(error))
            message = f"{self._say_changed(changes)} since it was listed or loaded: load it again, and read that"
            raise FetchError(message, self.location, "changed-on-server") from None

    def renew(self) -> McpContents:
        """The contents to load the skill from: those of the entry that the server has last announced.

        The server is asked for the entry again where its SKILL.md is not what that entry says. Raises ``FetchError``
        where the server does not give what was announced, and announces nothing else.
        """
        latest = self._at(self._announcement.entry)
        if latest is not self:
            return latest.renew()
        try:
            self._read(SKILL_MD)
        except FetchError as error:
            return self._at(self._ask_again(error))
        return self

    def find_changes(self) -> str:
        """Ask the server for the entry; which files differ in it, in one line, and ``""`` where none does.

        Raises ``FetchError`` where the server cannot be asked, or no longer gives the skill.
        """
        entry = self._ask_entry()
        return "" if entry.state == self.state else _describe_changes(self._entry, entry)

    def _at(self, entry: Entry) -> McpContents:
        """The contents of another entry of this skill; itself where the entry lists the same files."""
        if entry.state == self.state:
            return self
        return McpContents(
            entry,
            self._link,
            kept=self._kept,
            approvals=self._approvals,
            announcement=self._announcement,
            changes=_describe_changes(self._entry, entry),
        )

    def _ask_again(self, error: FetchError) -> Entry:
        """What the server announces now; raises ``error`` where that is nothing else."""
        if error.code not in _MAY_HAVE_CHANGED:
            raise error
        entry = self._ask_entry()
        if entry.state == self.state:
            raise error
        return entry

    def _ask_entry(self) -> Entry:
        """What the server announces now, which counts from now on. Ends approvals of another set of files."""
        try:
            answer = self._link.request("skills/get", {"uri": self._entry.uri})
        except FetchError as refused:
            if refused.code != "request-refused":
                raise
            message = f"{self._entry.uri} is no longer given: {refused.message}"
            raise FetchError(message, self.location, refused.code) from None
        entry = parse_entry(answer.get("skill"), self._link.limits)
        if entry.uri != self._entry.uri:
            message = f"MCP server {self.server.label!r} answered for another skill"
            raise FetchError(message, self.location, "bad-entry")
        self._announcement.entry = entry
        if self._approvals is not None:
            self._approvals.expire({self.location: entry.state})
        return entry

    def _read(self, path: str) -> bytes:
        file = self._entry.files.get(path)
        if file is None:
            raise ResourceNotFoundError(f"{self.server.label} lists no file {path!r} for this skill", path)
        data = self._kept.get(file.digest)
        if data is None or len(data) != file.size:
            data = self._fetched(file.uri)
            self._prove(path, data)
            self._kept.add(file.digest, data)
        if path == SKILL_MD:
            self._compare(data)
        return data

    def _fetched(self, uri: str) -> bytes:
        answer = self._link.request("resources/read", {"uri": uri})
        contents = answer.get("contents")
        if not isinstance(contents, list) or len(contents) != 1 or not isinstance(contents[0], dict):
            raise self._wrong(uri, "the answer holds no single file")
        text, blob = contents[0].get("text"), contents[0].get("blob")
        if isinstance(text, str) == isinstance(blob, str):
            raise self._wrong(uri, "the answer is neither text nor base64")
        try:
            return text.encode() if isinstance(text, str) else base64.b64decode(str(blob), validate=True)
        except (UnicodeEncodeError, binascii.Error, TypeError, ValueError):
            raise self._wrong(uri, "the answer cannot be decoded") from None

    def _prove(self, path: str, data: bytes) -> None:
        file = self._entry.files[path]
        if len(data) != file.size:
            raise self._wrong(file.uri, f"it has {len(data)} bytes, and {file.size} were announced")
        if hashlib.sha256(data).hexdigest() != file.digest:
            raise self._wrong(file.uri, "its digest is not what was announced")

    def _compare(self, data: bytes) -> None:
        """The frontmatter in the file is the one that was announced, field by field."""
        limits = self._link.limits
        most = limits.max_frontmatter_bytes
        written = styled_frontmatter(data[:most], whole=len(data) <= most, limits=limits)
        differing = differing_fields(written, self._entry.fields)
        if differing:
            message = f"{self._entry.uri}: {', '.join(differing)[:200]} in the file is not what was announced"
            raise FetchError(message, self.location, "differs-from-index")

    def _wrong(self, uri: str, why: str) -> FetchError:
        return FetchError(f"{uri}: {why}", self.location, "digest-mismatch")

    def everything(self) -> Iterator[NewFile]:
        return (NewFile(path, self.read(path)) for path in self.files())

    def issues(self) -> tuple[Issue, ...]:
        """What changed since the skill was listed, where it was loaded from another entry."""
        if not self._changes:
            return ()
        message = f"{self._say_changed(self._changes)} since it was listed; approvals of before do not count"
        return (Issue("changed-on-server", "", message, self.location, 0, "warning"),)

    def _say_changed(self, changes: str) -> str:
        return one_line(f"the skill {self._entry.uri} has changed on its server ({changes})")

    def announced(self, name: str) -> Frontmatter:
        """The fields as they were announced, which nobody has approved: no tools."""
        return replace(_narrowed(self._entry.front(), name), allowed_tools=(), allowed_tools_raw=None)

    def admitted(self, front: Frontmatter, name: str) -> Frontmatter:
        """The fields of the file under the name that the skill goes by; its tools only if a person approved them."""
        narrowed = _narrowed(front, name)
        if self._approvals is not None and self._approvals.is_approved(self.location, self.state):
            return narrowed
        return replace(narrowed, allowed_tools=(), allowed_tools_raw=None)


def _describe_changes(before: Entry, after: Entry) -> str:
    """Which files of a skill are others now, in one line."""
    old, new = before.files, after.files
    kinds = {
        "changed": [path for path in old if path in new and old[path].digest != new[path].digest],
        "added": [path for path in new if path not in old],
        "removed": [path for path in old if path not in new],
    }
    said = "; ".join(f"{kind}: {', '.join(paths)}" for kind, paths in kinds.items() if paths)
    return one_line(said[:_LONGEST_CHANGES])


def _narrowed(front: Frontmatter, name: str) -> Frontmatter:
    """The fields without those that ask for more; whatever only keeps a skill from being called stays."""
    extra = {key: value for key, value in front.extra.items() if not _widens(key)}
    # Without the bytes of the head: they hold what is left out here.
    return replace(front, name=name, model=None, context=None, extra=extra, raw=b"")


def _widens(key: str) -> bool:
    return key.casefold().replace("-", "").replace("_", "").strip() in _WIDENING
