"""Skills of an MCP server, as entries named ``label:name``: listed at first, read when asked for, always checked.

The label is the caller's, so no server decides what it is called, and none can shadow a skill of another origin. A file
that the held entry does not list is not read; one whose size or digest differs is not used. Nothing is kept on disk.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Literal, Self
from urllib.parse import urlsplit

from prowess.errors import FetchError, Issue, NotTrustedError, SourceError
from prowess.fetch.url_policy import check_headers
from prowess.limits import DEFAULT_LIMITS
from prowess.model import Place
from prowess.names import SKILL_FILE
from prowess.skills.catalog import Catalog
from prowess.skills.location import SkillLocation
from prowess.skills.skill import make_remote_skill
from prowess.sources.mcp.connection import McpConnection, McpServer, load_sdk
from prowess.sources.mcp.entry import McpEntry, parse_entry, parse_uri
from prowess.sources.mcp.files import McpSkillFiles, VerifiedFileCache
from prowess.sources.mcp.listing import McpListing
from prowess.sources.mcp.names import McpNames
from prowess.sources.prefetch import Prefetch
from prowess.spec.document import LoadPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.limits import Limits
    from prowess.skills.skill import Skill
    from prowess.sources.mcp.approvals import Approvals

_LABEL = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+){0,15}")
_MAX_LABEL_LENGTH = 32
_LOOPBACK_HOSTS = frozenset(("127.0.0.1", "localhost", "::1"))


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
        _check_arguments(label, command, url, allow_http=allow_http)
        if missing not in {"ignore", "error"}:
            raise SourceError(f"missing must be 'ignore' or 'error', not {missing!r}")
        self._label = label
        self._limits = limits or DEFAULT_LIMITS
        self._missing = missing
        self._approvals = approvals
        server = McpServer(label, tuple(command), url, check_headers(headers), dict(env or {}), cwd)
        self._connection = McpConnection(server, self._limits)
        self._kept = VerifiedFileCache(self._limits.max_mcp_kept_bytes)
        self._names = McpNames(label)
        self._prefetch: Prefetch[McpListing] | None = None

    def __repr__(self) -> str:
        """The label; what goes with it stays unsaid."""
        return f"Source.mcp({self._label!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and the program that was started for it."""
        self._connection.close()

    @property
    def namespace(self) -> str:
        """What its skills are known by, so that no other source of a catalogue may have it: ``mcp:label``."""
        return f"mcp:{self._label}"

    def begin(self) -> None:
        """Begin to connect and to ask what there is, so that several servers are waited for at once."""
        until = self._listing_deadline()
        self._connection.start_connecting()
        self._prefetch = Prefetch(lambda: self._read_listing(until))

    # -- what there is -----------------------------------------------------------------------------------------------

    def load(self) -> Catalog:
        """What the server lists now; nothing else is read. What cannot be had is in ``issues``.

        A listing may be empty or partial: ``get`` loads a skill by its address alone. It is waited for no longer than
        ``Limits.max_mcp_list_seconds``, connecting included; what was listed by then is used.
        """
        ahead, self._prefetch = self._prefetch, None
        try:
            listing = self._read_listing(self._listing_deadline()) if ahead is None else ahead.result()
        except FetchError as error:
            if self._missing == "error":
                raise
            issue = Issue(error.code, "", error.message, self.namespace)
            return Catalog(issues=[issue], places=[Place(self.namespace, state="not reached")])
        skills = self._make_skills(listing)
        return Catalog(skills, issues=listing.issues, places=[Place(self.namespace, found=len(skills))])

    def get(self, uri: str) -> Skill:
        """The skill at an address, listed or not; raises ``FetchError``."""
        parse_uri(uri)
        load_sdk()
        McpListing(self._connection, self._limits).check_extension()
        answer = self._connection.request("skills/get", {"uri": uri})
        entry = parse_entry(answer.get("skill"), self._limits)
        if entry.uri != uri:
            raise FetchError(f"MCP server {self._label!r} answered for another skill", self.namespace, "bad-entry")
        skill = self._make_skill(entry, self._names.name_requested(entry))
        self._expire_approvals([skill])
        return skill

    def _listing_deadline(self) -> float:
        """When a listing that begins now has to be over."""
        load_sdk()  # before the clock starts
        return time.monotonic() + self._limits.max_mcp_list_seconds

    def _read_listing(self, until: float) -> McpListing:
        listing = McpListing(self._connection, self._limits)
        try:
            listing.read_pages(until)
        except FetchError as error:
            if self._missing == "error" or not listing.has_page:
                raise
            listing.report_stop(error)
        return listing

    def _make_skills(self, listing: McpListing) -> list[Skill]:
        """A skill for each entry; where names repeat, numbers tell them apart, and issues say so."""
        names = self._names.name_listed(listing.entries)
        skills = [self._make_skill(entry, names[entry.uri]) for entry in listing.entries]
        for entry in listing.entries:
            name, plain = names[entry.uri], self._names.base_name(entry)
            if name != plain:
                message = f"{plain} is taken by another skill of the server; this one is {name}"
                where = f"{self.namespace}:{entry.uri}"
                listing.issues.append(Issue("duplicate-name", "name", message, where, 0, "warning"))
        try:
            self._expire_approvals(skills)
        except NotTrustedError as error:
            listing.issues.append(Issue(error.code, "", error.message, error.path))
        return skills

    def _make_skill(self, entry: McpEntry, name: str) -> Skill:
        contents = McpSkillFiles(entry, self._connection, kept=self._kept, approvals=self._approvals)
        virtual = name.replace(":", "/", 1)
        policy = LoadPolicy(limits=self._limits)
        home = SkillLocation(file=SKILL_FILE, policy=policy, origin="mcp", virtual_path=virtual, files=contents)
        return make_remote_skill(home, contents.as_announced(name))

    def _expire_approvals(self, skills: Sequence[Skill]) -> None:
        """End the approvals of skills whose files are others now."""
        if self._approvals is not None:
            self._approvals.expire({skill.location: str(skill.state) for skill in skills})


def _check_arguments(label: str, command: Sequence[str], url: str, *, allow_http: bool) -> None:
    if len(label) > _MAX_LABEL_LENGTH or not _LABEL.fullmatch(label):
        raise SourceError(f"a label is lower-case letters, digits and single hyphens, not {label[:64]!r}")
    if isinstance(command, str) or bool(command) == bool(url):
        raise SourceError("an MCP server has a command, as a list, or a url")
    if not url:
        return
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise SourceError("the url of an MCP server begins with https:// and holds no password", code="bad-address")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK_HOSTS and not allow_http:
        raise SourceError(f"{parts.hostname} is asked without encryption", code="plain-http")
