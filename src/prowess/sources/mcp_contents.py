"""The files of one skill of an MCP server: read when they are asked for, proved each time, kept in memory only."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from prowess.errors import FetchError, Issue, ResourceNotFoundError
from prowess.files.writing import NewFile
from prowess.sources.mcp_entry import SKILL_MD
from prowess.spec.rules import INERT
from prowess.spec.typed import differing_fields, styled_frontmatter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.sources.approvals import Approvals
    from prowess.sources.mcp_entry import Entry
    from prowess.sources.mcp_link import Link, Server
    from prowess.spec.fields import Frontmatter

_WIDENING = frozenset(
    key.lower().replace("-", "").replace("_", "")
    for key in (*INERT, "agent", "allowed-tools", "background", "context", "effort", "permission-mode", "tools")
)
"""Fields that ask for more than to be read, however they are spelled."""


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


class McpContents:
    """The files of one skill of a server, as its entry lists them."""

    def __init__(self, entry: Entry, link: Link, *, kept: Kept, approvals: Approvals | None) -> None:
        self._entry = entry
        self._link = link
        self._kept = kept
        self._approvals = approvals

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
        return tuple(self._entry.files)

    def files(self) -> tuple[str, ...]:
        return tuple(self._entry.files)

    def read(self, path: str) -> bytes:
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
        return (NewFile(path, self.read(path)) for path in self._entry.files)

    def issues(self) -> tuple[Issue, ...]:
        return ()

    def announced(self, name: str) -> Frontmatter:
        """The fields as they were announced, which nobody has approved: no tools."""
        return replace(_narrowed(self._entry.front(), name), allowed_tools=(), allowed_tools_raw=None)

    def admitted(self, front: Frontmatter, name: str) -> Frontmatter:
        """The fields of the file under the name that the skill goes by; its tools only if a person approved them."""
        narrowed = _narrowed(front, name)
        if self._approvals is not None and self._approvals.is_approved(self.location, self.state):
            return narrowed
        return replace(narrowed, allowed_tools=(), allowed_tools_raw=None)


def _narrowed(front: Frontmatter, name: str) -> Frontmatter:
    """The fields without those that ask for more; whatever only keeps a skill from being called stays."""
    extra = {key: value for key, value in front.extra.items() if not _widens(key)}
    # Without the bytes of the head: they hold what is left out here.
    return replace(front, name=name, model=None, context=None, extra=extra, raw=b"")


def _widens(key: str) -> bool:
    return key.casefold().replace("-", "").replace("_", "").strip() in _WIDENING
