"""Skills of an MCP server, as entries named ``label:name``: listed at first, read when asked for, always checked.

The label is the caller's, so no server decides what it is called, and none can shadow a skill of another origin. A file
that the held entry does not list is not read; one whose size or digest differs is not used. Nothing is kept on disk.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import time
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

from prowess.errors import FetchError, Issue, ResourceNotFoundError, SourceError
from prowess.files.writing import NewFile
from prowess.library.catalog import Catalog
from prowess.library.home import Home
from prowess.library.skill import announced
from prowess.limits import DEFAULT_LIMITS
from prowess.model import Place
from prowess.sources.ahead import Ahead
from prowess.sources.mcp_entry import SKILL_MD, Entry, parse_entry
from prowess.sources.mcp_link import EXTENSION, Link, Server, check_installed
from prowess.spec.document import Policy
from prowess.spec.typed import differing_fields, styled_frontmatter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prowess.library.skill import Skill
    from prowess.limits import Limits
    from prowess.sources.approvals import Approvals
    from prowess.spec.fields import Frontmatter

_LABEL = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+){0,15}")
_LONGEST_LABEL = 32
_LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))


class McpSource:
    """A server to ask; a context manager. The connection is kept for reads until ``close()``."""

    def __init__(
        self,
        label: str,
        *,
        command: Sequence[str] = (),
        url: str = "",
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        allow_http: bool = False,
        approvals: Approvals | None = None,
        missing: Literal["ignore", "error"] = "ignore",
        limits: Limits | None = None,
    ) -> None:
        _check(label, command, url, allow_http=allow_http)
        if missing not in {"ignore", "error"}:
            raise SourceError(f"missing must be 'ignore' or 'error', not {missing!r}")
        self._label = label
        self._limits = limits or DEFAULT_LIMITS
        self._missing = missing
        self._approvals = approvals
        self._link = Link(Server(label, tuple(command), url, dict(headers or {}), dict(env or {}), cwd), self._limits)
        self._kept = Kept(self._limits.max_mcp_kept_bytes)
        self._ahead: Ahead[tuple[list[Entry], list[Issue]]] | None = None

    def __repr__(self) -> str:
        """The label; what goes with it stays unsaid."""
        return f"Source.mcp({self._label!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and the program that was started for it."""
        self._link.close()

    def begin(self) -> None:
        """Begin to connect and to ask what there is, so that several servers are waited for at once."""
        check_installed()
        self._link.begin()
        self._ahead = Ahead(self._found)

    # -- what there is -----------------------------------------------------------------------------------------------

    def load(self) -> Catalog:
        """What the server lists now; nothing else is read. What cannot be had is in ``issues``.

        A listing may be empty or partial: ``get`` loads a skill by its address alone.
        """
        check_installed()
        ahead, self._ahead = self._ahead, None
        try:
            entries, issues = self._found() if ahead is None else ahead.result()
        except FetchError as error:
            if self._missing == "error":
                raise
            issue = Issue(error.code, "", error.message, self._where())
            return Catalog(issues=[issue], places=[Place(self._where(), state="not reached")])
        skills = list(self._named(entries, issues))
        return Catalog(skills, issues=issues, places=[Place(self._where(), found=len(skills))])

    def _found(self) -> tuple[list[Entry], list[Issue]]:
        self._declared()
        return self._listed()

    def get(self, uri: str) -> Skill:
        """The skill at an address, listed or not; raises ``FetchError``."""
        check_installed()
        self._declared()
        answer = self._link.request("skills/get", {"uri": uri})
        entry = parse_entry(answer.get("skill"), self._limits)
        if entry.uri != uri:
            raise FetchError(f"MCP server {self._label!r} answered for another skill", self._where(), "bad-entry")
        return self._skill(entry, f"{self._label}:{entry.name}")

    def _where(self) -> str:
        return f"mcp:{self._label}"

    def _declared(self) -> None:
        """Raise unless the server said that it has skills: only then is it asked for them."""
        extensions = self._link.capabilities().get("extensions")
        if not isinstance(extensions, dict) or EXTENSION not in extensions:
            raise FetchError(f"MCP server {self._label!r} declares no skills", self._where(), "no-extension")

    def _listed(self) -> tuple[list[Entry], list[Issue]]:
        entries: list[Entry] = []
        issues: list[Issue] = []
        most, until = self._limits.max_mcp_skills, time.monotonic() + self._limits.max_mcp_list_seconds
        cursors: set[str] = set()
        params: dict[str, Any] = {}
        while True:
            answer = self._link.request("skills/list", params)
            for raw in _rows(answer, self._label):
                try:
                    entries.append(parse_entry(raw, self._limits))
                except FetchError as error:
                    issues.append(Issue(error.code, "", f"is not used: {error.message}", self._where(), 0, "warning"))
            cursor = answer.get("nextCursor")
            if cursor is None:
                return entries, issues
            if not isinstance(cursor, str) or cursor in cursors or len(cursors) >= most or time.monotonic() > until:
                break
            cursors.add(cursor)
            if len(entries) + len(issues) > most:
                break
            params = {"cursor": cursor}
        message = f"the listing of MCP server {self._label!r} does not end; {min(len(entries), most)} skills are used"
        issues.append(Issue("endless-listing", "", message, self._where()))
        return entries[:most], issues[-most:]

    def _named(self, entries: list[Entry], issues: list[Issue]) -> Iterator[Skill]:
        """A skill for each entry; where names repeat, numbers tell them apart."""
        taken: set[str] = set()
        seen: set[str] = set()
        for entry in entries:
            if entry.uri in seen:
                issues.append(Issue("bad-entry", "", f"{entry.uri} is listed twice", self._where(), 0, "warning"))
                continue
            seen.add(entry.uri)
            name, number = f"{self._label}:{entry.name}", 2
            while name in taken:
                name, number = f"{self._label}:{entry.name}-{number}", number + 1
            if number > 2:  # noqa: PLR2004 - the first repeat
                message = f"{self._label}:{entry.name} is taken by another skill of the server; this one is {name}"
                issues.append(Issue("duplicate-name", "name", message, f"{self._where()}:{entry.uri}", 0, "warning"))
            taken.add(name)
            yield self._skill(entry, name)

    def _skill(self, entry: Entry, name: str) -> Skill:
        contents = McpContents(entry, self._label, self._link, self._kept, self._approvals)
        virtual = name.replace(":", "/", 1)
        policy = Policy(limits=self._limits)
        home = Home(file=SKILL_MD, policy=policy, origin="mcp", virtual=virtual, contents=contents)
        return announced(home, contents.admitted(entry.front(), name))


def _check(label: str, command: Sequence[str], url: str, *, allow_http: bool) -> None:
    if len(label) > _LONGEST_LABEL or not _LABEL.fullmatch(label):
        raise SourceError(f"a label is lower-case letters, digits and single hyphens, not {label[:64]!r}")
    if isinstance(command, str) or bool(command) == bool(url):
        raise SourceError("an MCP server has a command, as a list, or a url")
    if not url:
        return
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise SourceError("the url of an MCP server begins with https:// and holds no password", code="bad-address")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not allow_http:
        raise SourceError(f"{parts.hostname} is asked without encryption", code="plain-http")


def _rows(answer: dict[str, Any], label: str) -> list[object]:
    rows = answer.get("skills")
    if not isinstance(rows, list):
        raise FetchError(f"MCP server {label!r}: the listing is no list", f"mcp:{label}", "bad-entry")
    return rows


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

    def __init__(self, entry: Entry, label: str, link: Link, kept: Kept, approvals: Approvals | None) -> None:
        self._entry = entry
        self._label = label
        self._link = link
        self._kept = kept
        self._approvals = approvals

    @property
    def location(self) -> str:
        """The label and the address: together they are what the skill is known by."""
        return f"mcp:{self._label}:{self._entry.uri}"

    @property
    def state(self) -> str:
        return self._entry.state

    @property
    def told_by(self) -> str:
        """Who says what is in it, for models."""
        return f"the MCP server {self._label!r}"

    def names(self) -> tuple[str, ...] | None:
        return tuple(self._entry.files)

    def files(self) -> tuple[str, ...]:
        return tuple(self._entry.files)

    def read(self, path: str) -> bytes:
        file = self._entry.files.get(path)
        if file is None:
            raise ResourceNotFoundError(f"{self._label} lists no file {path!r} for this skill", path)
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
        written = styled_frontmatter(data[: DEFAULT_LIMITS.max_frontmatter_bytes])
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

    def admitted(self, front: Frontmatter, name: str) -> Frontmatter:
        """The fields under the name that the skill goes by; the tools it names only if a person approved them."""
        from dataclasses import replace  # noqa: PLC0415 - beside the data class

        approved = self._approvals is not None and self._approvals.is_approved(self.location, self.state)
        if approved:
            return replace(front, name=name)
        return replace(front, name=name, allowed_tools=(), allowed_tools_raw=None)
