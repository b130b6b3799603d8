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
from prowess.names import SKILL_FILE
from prowess.skills.remote_files import RemoteFiles
from prowess.sources.mcp.entry import parse_entry
from prowess.spec.frontmatter.json_types import find_differing_fields, parse_styled_frontmatter
from prowess.spec.hidden_characters import to_one_line
from prowess.spec.rules import INERT_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.sources.mcp.approvals import Approvals
    from prowess.sources.mcp.connection import McpConnection, McpServer
    from prowess.sources.mcp.entry import McpEntry
    from prowess.spec.frontmatter.fields import Frontmatter

_PRIVILEGE_KEYS = frozenset(
    key.lower().replace("-", "").replace("_", "")
    for key in (*INERT_FIELDS, "agent", "allowed-tools", "background", "context", "effort", "permission-mode", "tools")
)
"""Fields that ask for more than to be read, however they are spelled."""


_CHANGE_CODES = frozenset(("digest-mismatch", "request-refused"))
_MAX_CHANGES_CHARS = 400


class VerifiedFileCache:
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


class LatestEntry:
    """What a server has last announced of one skill: shared by all contents of that skill, whichever asked."""

    __slots__ = ("entry",)

    def __init__(self, entry: McpEntry) -> None:
        self.entry = entry


class McpSkillFiles(RemoteFiles):
    """The files of one skill of a server, as one entry of it lists them: one state, which never becomes another.

    When a file is not what was announced, the server is asked for the entry again. If that is another, the skill has
    changed: whoever loads it gets contents of the new entry, and these here keep to the old one, so that no file of the
    new set stands beside instructions of the old one. A person who approves a skill approves what they have seen of it.
    """

    def __init__(
        self,
        entry: McpEntry,
        link: McpConnection,
        *,
        kept: VerifiedFileCache,
        approvals: Approvals | None,
        announcement: LatestEntry | None = None,
        changes: str = "",
    ) -> None:
        self._entry = entry
        self._connection = link
        self._cache = kept
        self._approvals = approvals
        self._latest = announcement or LatestEntry(entry)
        self._changes = changes

    @property
    def server(self) -> McpServer:
        """What it is read from."""
        return self._connection.server

    @property
    def location(self) -> str:
        """The label and the address: together they are what the skill is known by."""
        return f"mcp:{self.server.label}:{self._entry.uri}"

    @property
    def state(self) -> str:
        return self._entry.state

    @property
    def source_label(self) -> str:
        """Who says what is in it, for models."""
        return f"the MCP server {self.server.label!r}"

    def known_files(self) -> tuple[str, ...] | None:
        return self.files()

    def files(self) -> tuple[str, ...]:
        return tuple(self._entry.files)

    def read(self, path: str) -> bytes:
        """The bytes of a file; raises ``FetchError`` (``changed-on-server``) where the skill has changed since."""
        try:
            return self._read_verified(path)
        except FetchError as error:
            changes = _describe_changes(self._entry, self._fetch_changed_entry(error))
            message = f"{self._changed_message(changes)} since it was listed or loaded: load it again, and read that"
            raise FetchError(message, self.location, "changed-on-server") from None

    def renew(self) -> McpSkillFiles:
        """The contents to load the skill from: those of the entry that the server has last announced.

        The server is asked for the entry again where its SKILL.md is not what that entry says. Raises ``FetchError``
        where the server does not give what was announced, and announces nothing else.
        """
        latest = self._with_entry(self._latest.entry)
        if latest is not self:
            return latest.renew()
        try:
            self._read_verified(SKILL_FILE)
        except FetchError as error:
            return self._with_entry(self._fetch_changed_entry(error))
        return self

    def find_changes(self) -> str:
        """Ask the server for the entry; which files differ in it, in one line, and ``""`` where none does.

        Raises ``FetchError`` where the server cannot be asked, or no longer gives the skill.
        """
        entry = self._fetch_entry()
        return "" if entry.state == self.state else _describe_changes(self._entry, entry)

    def _with_entry(self, entry: McpEntry) -> McpSkillFiles:
        """The contents of another entry of this skill; itself where the entry lists the same files."""
        if entry.state == self.state:
            return self
        return McpSkillFiles(
            entry,
            self._connection,
            kept=self._cache,
            approvals=self._approvals,
            announcement=self._latest,
            changes=_describe_changes(self._entry, entry),
        )

    def _fetch_changed_entry(self, error: FetchError) -> McpEntry:
        """What the server announces now; raises ``error`` where that is nothing else."""
        if error.code not in _CHANGE_CODES:
            raise error
        entry = self._fetch_entry()
        if entry.state == self.state:
            raise error
        return entry

    def _fetch_entry(self) -> McpEntry:
        """What the server announces now, which counts from now on. Ends approvals of another set of files."""
        try:
            answer = self._connection.request("skills/get", {"uri": self._entry.uri})
        except FetchError as refused:
            if refused.code != "request-refused":
                raise
            message = f"{self._entry.uri} is no longer given: {refused.message}"
            raise FetchError(message, self.location, refused.code) from None
        entry = parse_entry(answer.get("skill"), self._connection.limits)
        if entry.uri != self._entry.uri:
            message = f"MCP server {self.server.label!r} answered for another skill"
            raise FetchError(message, self.location, "bad-entry")
        self._latest.entry = entry
        if self._approvals is not None:
            self._approvals.expire({self.location: entry.state})
        return entry

    def _read_verified(self, path: str) -> bytes:
        file = self._entry.files.get(path)
        if file is None:
            raise ResourceNotFoundError(f"{self.server.label} lists no file {path!r} for this skill", path)
        data = self._cache.get(file.digest)
        if data is None or len(data) != file.size:
            data = self._fetch_file(file.uri)
            self._verify_file(path, data)
            self._cache.add(file.digest, data)
        if path == SKILL_FILE:
            self._compare_frontmatter(data)
        return data

    def _fetch_file(self, uri: str) -> bytes:
        answer = self._connection.request("resources/read", {"uri": uri})
        contents = answer.get("contents")
        if not isinstance(contents, list) or len(contents) != 1 or not isinstance(contents[0], dict):
            raise self._make_mismatch_error(uri, "the answer holds no single file")
        text, blob = contents[0].get("text"), contents[0].get("blob")
        if isinstance(text, str) == isinstance(blob, str):
            raise self._make_mismatch_error(uri, "the answer is neither text nor base64")
        try:
            return text.encode() if isinstance(text, str) else base64.b64decode(str(blob), validate=True)
        except (UnicodeEncodeError, binascii.Error, TypeError, ValueError):
            raise self._make_mismatch_error(uri, "the answer cannot be decoded") from None

    def _verify_file(self, path: str, data: bytes) -> None:
        file = self._entry.files[path]
        if len(data) != file.size:
            raise self._make_mismatch_error(file.uri, f"it has {len(data)} bytes, and {file.size} were announced")
        if hashlib.sha256(data).hexdigest() != file.digest:
            raise self._make_mismatch_error(file.uri, "its digest is not what was announced")

    def _compare_frontmatter(self, data: bytes) -> None:
        """The frontmatter in the file is the one that was announced, field by field."""
        limits = self._connection.limits
        most = limits.max_frontmatter_bytes
        written = parse_styled_frontmatter(data[:most], whole=len(data) <= most, limits=limits)
        differing = find_differing_fields(written, self._entry.fields)
        if differing:
            message = f"{self._entry.uri}: {', '.join(differing)[:200]} in the file is not what was announced"
            raise FetchError(message, self.location, "differs-from-index")

    def _make_mismatch_error(self, uri: str, why: str) -> FetchError:
        return FetchError(f"{uri}: {why}", self.location, "digest-mismatch")

    def read_all(self) -> Iterator[NewFile]:
        return (NewFile(path, self.read(path)) for path in self.files())

    def issues(self) -> tuple[Issue, ...]:
        """What changed since the skill was listed, where it was loaded from another entry."""
        if not self._changes:
            return ()
        message = f"{self._changed_message(self._changes)} since it was listed; approvals of before do not count"
        return (Issue("changed-on-server", "", message, self.location, 0, "warning"),)

    def _changed_message(self, changes: str) -> str:
        return to_one_line(f"the skill {self._entry.uri} has changed on its server ({changes})")

    def as_announced(self, name: str) -> Frontmatter:
        """The fields as they were announced, which nobody has approved: no tools."""
        return replace(
            _without_privileges(self._entry.to_frontmatter(), name), allowed_tools=(), allowed_tools_raw=None
        )

    def admit_fields(self, front: Frontmatter, name: str) -> Frontmatter:
        """The fields of the file under the name that the skill goes by; its tools only if a person approved them."""
        narrowed = _without_privileges(front, name)
        if self._approvals is not None and self._approvals.is_approved(self.location, self.state):
            return narrowed
        return replace(narrowed, allowed_tools=(), allowed_tools_raw=None)


def _describe_changes(before: McpEntry, after: McpEntry) -> str:
    """Which files of a skill are others now, in one line."""
    old, new = before.files, after.files
    kinds = {
        "changed": [path for path in old if path in new and old[path].digest != new[path].digest],
        "added": [path for path in new if path not in old],
        "removed": [path for path in old if path not in new],
    }
    said = "; ".join(f"{kind}: {', '.join(paths)}" for kind, paths in kinds.items() if paths)
    return to_one_line(said[:_MAX_CHANGES_CHARS])


def _without_privileges(front: Frontmatter, name: str) -> Frontmatter:
    """The fields without those that ask for more; whatever only keeps a skill from being called stays."""
    extra = {key: value for key, value in front.extra.items() if not _is_privilege(key)}
    # Without the bytes of the head: they hold what is left out here.
    return replace(front, name=name, model=None, context=None, extra=extra, raw=b"")


def _is_privilege(key: str) -> bool:
    return key.casefold().replace("-", "").replace("_", "").strip() in _PRIVILEGE_KEYS
