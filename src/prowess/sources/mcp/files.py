"""The files of one skill of an MCP server: read when needed, checked each time, and kept in memory only."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from prowess.errors import FetchError, Issue, ResourceNotFoundError
from prowess.files.write import NewFile
from prowess.format.frontmatter.json_types import find_differing_fields, parse_styled_frontmatter
from prowess.format.rules import INERT_FIELDS
from prowess.names import SKILL_FILE
from prowess.skills.remote_files import RemoteFiles
from prowess.sources.mcp.entry import parse_entry
from prowess.text.hidden_characters import to_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.limits import Limits
    from prowess.sources.mcp.approvals import Approvals
    from prowess.sources.mcp.connection import McpConnection, McpServer
    from prowess.sources.mcp.entry import McpEntry

_PRIVILEGE_KEYS = frozenset(
    key.lower().replace("-", "").replace("_", "")
    for key in (*INERT_FIELDS, "agent", "allowed-tools", "background", "context", "effort", "permission-mode", "tools")
)
"""Fields by which a skill asks for more than to be read, without hyphens and underscores."""


_CHANGE_CODES = frozenset(("digest-mismatch", "request-refused"))
_MAX_CHANGES_CHARS = 400


class VerifiedFileCache:
    """Files that were read and match their digest. When they become too many bytes, the oldest are dropped."""

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
    """The last entry that a server announced for one skill; all ``McpSkillFiles`` of that skill share it."""

    __slots__ = ("entry",)

    def __init__(self, entry: McpEntry) -> None:
        self.entry = entry


class McpSkillFiles(RemoteFiles):
    """The files of one skill of a server, as one entry lists them. The object never changes to another entry.

    When a file is not what was announced, the server is asked for the entry again. If the entry differs, the skill has
    changed. Loading the skill then uses the new entry (``renew``), and this object keeps to the old one. So no file of
    the new set is read beside instructions of the old one, and an approval holds for what a person has seen.
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
        """The server that the files are read from."""
        return self._connection.server

    @property
    def location(self) -> str:
        """The label of the server and the address of the skill, which together name the skill."""
        return f"mcp:{self.server.label}:{self._entry.uri}"

    @property
    def state(self) -> str:
        return self._entry.state

    @property
    def limits(self) -> Limits:
        return self._connection.limits

    @property
    def source_label(self) -> str:
        """The origin of the skill in words, for models."""
        return f"the MCP server {self.server.label!r}"

    announces_fields = False

    def known_files(self) -> tuple[str, ...] | None:
        return self.files()

    def files(self) -> tuple[str, ...]:
        return tuple(self._entry.files)

    def read(self, path: str) -> bytes:
        """Return the bytes of a file; raises ``FetchError`` (``changed-on-server``) when the skill has changed."""
        try:
            return self._read_verified_file(path)
        except FetchError as error:
            changes = _describe_changes(self._entry, self._fetch_changed_entry(error))
            message = f"{self._changed_message(changes)} since it was listed or loaded: load it again, and read that"
            raise FetchError(message, self.location, "changed-on-server") from None

    def renew(self) -> McpSkillFiles:
        """Return the files to load the skill from: those of the entry that the server announced last.

        The server is asked for the entry again when its SKILL.md is not what that entry says. Raises ``FetchError``
        when the server does not give what it announced, and announces nothing else.
        """
        latest = self._with_entry(self._latest.entry)
        if latest is not self:
            return latest.renew()
        try:
            self._read_verified_file(SKILL_FILE)
        except FetchError as error:
            return self._with_entry(self._fetch_changed_entry(error))
        return self

    def find_changes(self) -> str:
        """Ask the server for the entry, and return in one line which files have changed; ``""`` when none has.

        Raises ``FetchError`` when the server cannot be asked, or no longer gives the skill.
        """
        entry = self._fetch_entry()
        return "" if entry.state == self.state else _describe_changes(self._entry, entry)

    def _with_entry(self, entry: McpEntry) -> McpSkillFiles:
        """Return the files of another entry of this skill; ``self`` when that entry lists equal files."""
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
        """Return the entry that the server announces now; raises ``error`` when it is still the old one."""
        if error.code not in _CHANGE_CODES:  # a timeout, for one, says nothing about the skill
            raise error
        entry = self._fetch_entry()
        if entry.state == self.state:
            raise error
        return entry

    def _fetch_entry(self) -> McpEntry:
        """Return the entry that the server announces now, and make it the latest one.

        Approvals of another state end. Raises ``FetchError`` when the server does not give the skill any more.
        """
        try:
            answer = self._connection.request("skills/get", {"uri": self._entry.uri})
        except FetchError as refused:
            if refused.code != "request-refused":
                raise
            raise FetchError(
                f"{self._entry.uri} is no longer offered: {refused.message}", self.location, refused.code
            ) from None
        entry = parse_entry(answer.get("skill"), self._connection.limits)
        if entry.uri != self._entry.uri:
            raise FetchError(f"MCP server {self.server.label!r} answered for another skill", self.location, "bad-entry")
        self._latest.entry = entry  # before the approvals: an error there must not bring the old entry back
        if self._approvals is not None:
            self._approvals.expire({self.location: entry.state})
        return entry

    def _read_verified_file(self, path: str) -> bytes:
        file = self._entry.files.get(path)
        if file is None:
            raise ResourceNotFoundError(f"{self.server.label} lists no file {path!r} for this skill", path)
        data = self._cache.get(file.digest)
        # The size too: an entry may announce the digest of another entry's file with a size that is wrong.
        if data is None or len(data) != file.size:
            data = self._fetch_file(file.uri)
            self._verify_file(path, data)
            self._cache.add(file.digest, data)
        if path == SKILL_FILE:
            self._compare_frontmatter(data)
        return data

    def _fetch_file(self, uri: str) -> bytes:
        contents = self._connection.request("resources/read", {"uri": uri}).get("contents")
        if not isinstance(contents, list) or len(contents) != 1 or not isinstance(contents[0], dict):
            raise self._make_mismatch_error(uri, "the answer holds no single file")
        text, blob = contents[0].get("text"), contents[0].get("blob")
        if isinstance(text, str) == isinstance(blob, str):  # both, or neither
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
        """Raise ``FetchError`` unless the frontmatter in SKILL.md is the announced one, field by field.

        Else a server could show one description in the list, and give the model another.
        """
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
        """Return what has changed since the skill was listed, when it was loaded from a newer entry."""
        if not self._changes:
            return ()
        message = f"{self._changed_message(self._changes)} since it was listed; earlier approvals do not count"
        return (Issue("changed-on-server", "", message, self.location, 0, "warning"),)

    def _changed_message(self, changes: str) -> str:
        return to_one_line(f"the skill {self._entry.uri} has changed on its server ({changes})")

    def get_announced_fields(self, name: str) -> Frontmatter:
        """Return the announced fields without tools, because nobody has approved them."""
        return replace(
            _without_privileges(self._entry.to_frontmatter(), name), allowed_tools=(), allowed_tools_raw=None
        )

    def admit_fields(self, front: Frontmatter, name: str) -> Frontmatter:
        """Return the fields of the file under the skill's name in the catalogue, with tools only if approved."""
        narrowed = _without_privileges(front, name)
        if self._approvals is not None and self._approvals.is_approved(self.location, self.state):
            return narrowed
        return replace(narrowed, allowed_tools=(), allowed_tools_raw=None)


def _describe_changes(before: McpEntry, after: McpEntry) -> str:
    """Return in one line which files of a skill have changed, were added or were removed."""
    old, new = before.files, after.files
    kinds = {
        "changed": [path for path in old if path in new and old[path].digest != new[path].digest],
        "added": [path for path in new if path not in old],
        "removed": [path for path in old if path not in new],
    }
    said = "; ".join(f"{kind}: {', '.join(paths)}" for kind, paths in kinds.items() if paths)
    return to_one_line(said[:_MAX_CHANGES_CHARS])


def _without_privileges(front: Frontmatter, name: str) -> Frontmatter:
    """Return the fields without those that ask for more; a field that only forbids a call of the skill stays."""
    # However a field is written, some model or host might take it for the real one.
    extra = {
        key: value
        for key, value in front.extra.items()
        if key.casefold().replace("-", "").replace("_", "").strip() not in _PRIVILEGE_KEYS
    }
    # Without the bytes of the frontmatter, since they hold the fields that are left out here.
    return replace(front, name=name, model=None, context=None, extra=extra, raw=b"")
