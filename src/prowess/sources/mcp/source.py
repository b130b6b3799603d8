"""The source of the skills of one MCP server, named ``label:name``; they are listed first and read when needed.

The caller chooses the label, so no server decides what it is called, and none can shadow a skill of another source. A
file that the entry of a skill does not list is not read. A file whose size or digest differs from the entry is not
used. Nothing is kept on the disk but what a search needs of the listing.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar
from urllib.parse import urlsplit

from prowess.errors import FetchError, Issue, NotTrustedError, SourceError
from prowess.fetch.url_policy import check_headers
from prowess.format.head import LoadPolicy
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE
from prowess.policy.files import current_policy
from prowess.skills.catalog import Catalog
from prowess.skills.explanation import Place
from prowess.skills.skill import make_remote_skill
from prowess.skills.skill_files import SkillLocation
from prowess.sources.mcp import EXTENSION
from prowess.sources.mcp.connection import McpConnection, McpServer, load_sdk
from prowess.sources.mcp.entry import McpEntry, parse_entry, parse_uri
from prowess.sources.mcp.files import McpSkillFiles, VerifiedFileCache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prowess.limits import Limits
    from prowess.skills.skill import Skill
    from prowess.sources.mcp.approvals import Approvals


_LABEL = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+){0,15}")
_MAX_LABEL_LENGTH = 32
# What stays on this machine needs no encryption.
_LOOPBACK_HOSTS = frozenset(("127.0.0.1", "localhost", "::1"))


class McpSource:
    """The skills of one MCP server. The connection stays open for reads until ``close()``, or the end of a ``with``."""

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
        self._label, self._url = label, url
        self._limits = limits or DEFAULT_LIMITS
        self._missing = missing
        self._approvals = approvals
        server = McpServer(label, tuple(command), url, check_headers(headers), dict(env or {}), cwd)
        self._connection = McpConnection(server, self._limits)
        self._kept = VerifiedFileCache(self._limits.max_mcp_kept_bytes)
        self._names = _McpNames(label)
        self._prefetch: _Prefetch[_McpListing] | None = None

    def __repr__(self) -> str:
        """Show the label, and not the command or headers, which may hold secrets."""
        return f"Source.mcp({self._label!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, and end the program that was started for it."""
        self._connection.close()

    @property
    def namespace(self) -> str:
        """``mcp:label``, by which its skills are known. No two sources of a catalogue may have one namespace."""
        return f"mcp:{self._label}"

    def begin(self) -> None:
        """Begin to connect and to list the skills, without waiting, so that several servers answer at once."""
        self._check_policy()
        until = self._listing_deadline()
        self._connection.start_connecting()
        self._prefetch = _Prefetch(lambda: self._read_listing(until))

    def _check_policy(self) -> None:
        """Raise ``PolicyError`` for a server that is not listed; one that a command starts is ``mcp:LABEL``."""
        current_policy().check_source(self._url or self.namespace)

    # -- what there is -----------------------------------------------------------------------------------------------

    def load(self) -> Catalog:
        """Return the skills that the server lists now; nothing else is read. ``issues`` says what went wrong.

        A listing may be empty or partial, and ``get`` loads a skill that is not in it. Connecting and listing take no
        longer than ``Limits.max_mcp_list_seconds``; what was listed by then is used. Raises ``FetchError`` when the
        server cannot be reached and ``missing`` is ``"error"``, ``PolicyError`` when the policy does not list it.
        """
        self._check_policy()
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
        """Return the skill at an address, listed or not; raises ``FetchError`` when the server does not give it."""
        parse_uri(uri)
        self._check_policy()
        load_sdk()
        _McpListing(self._connection, self._limits).check_extension()
        entry = parse_entry(self._connection.request("skills/get", {"uri": uri}).get("skill"), self._limits)
        if entry.uri != uri:
            raise FetchError(f"MCP server {self._label!r} answered for another skill", self.namespace, "bad-entry")
        skill = self._make_skill(entry, self._names.name_one(entry))
        self._expire_approvals([skill])
        return skill

    def _listing_deadline(self) -> float:
        """Return the moment at which a listing that begins now must end."""
        load_sdk()  # before the clock starts: a slow import is not the fault of the server
        return time.monotonic() + self._limits.max_mcp_list_seconds

    def _read_listing(self, until: float) -> _McpListing:
        listing = _McpListing(self._connection, self._limits)
        try:
            listing.read_pages(until)
        except FetchError as error:
            if self._missing == "error" or not listing.has_page:
                raise  # without a page nothing is known, and load() reports the server as not reached
            listing.report_stop(error)
        return listing

    def _make_skills(self, listing: _McpListing) -> list[Skill]:
        """Return a skill for each entry; where names repeat, numbers distinguish them, and issues say so."""
        names = self._names.name_all(listing.entries)
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
        virtual = name.replace(":", "/", 1)  # a folder for each server, which filters can name
        policy = LoadPolicy(limits=self._limits)
        home = SkillLocation(file=SKILL_FILE, policy=policy, origin="mcp", virtual_path=virtual, files=contents)
        return make_remote_skill(home, contents.get_announced_fields(name))

    def _expire_approvals(self, skills: Sequence[Skill]) -> None:
        """End the approvals of skills whose files have changed."""
        if self._approvals is not None:
            self._approvals.expire({skill.location: str(skill.state) for skill in skills})


def _check_arguments(label: str, command: Sequence[str], url: str, *, allow_http: bool) -> None:
    if len(label) > _MAX_LABEL_LENGTH or not _LABEL.fullmatch(label):
        raise SourceError(f"a label must be lower-case letters, digits and single hyphens, not {label[:64]!r}")
    if isinstance(command, str) or bool(command) == bool(url):
        raise SourceError("an MCP server needs a command (a list of strings) or a url")
    if not url:
        return
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise SourceError("the url of an MCP server must begin with https:// and hold no password", code="bad-address")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK_HOSTS and not allow_http:
        raise SourceError(f"{parts.hostname} is used without encryption", code="plain-http")


T = TypeVar("T")


class _Prefetch(Generic[T]):
    """Calls a function in a thread of its own. ``result`` returns what it returned, or raises what it raised."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._results: list[T] = []
        self._errors: list[BaseException] = []
        # A daemon: a server that never answers must not keep the program from ending.
        self._thread = Thread(target=self._run, args=(function,), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[[], T]) -> None:
        try:
            self._results.append(function())
        except BaseException as error:  # noqa: BLE001 - result() raises it in the thread that waits
            self._errors.append(error)

    def result(self) -> T:
        """Wait for the function, and return what it returned, or raise what it raised."""
        self._thread.join()
        for error in self._errors:
            raise error
        return self._results[0]


class _McpNames:
    """Gives each address the name ``label:name``; where two addresses have one name, ``-2``, ``-3`` distinguish them.

    It remembers the addresses of the last listing, and those that the caller asked for one by one. Otherwise a server
    could hand the name of one skill to another by listing them in another order.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._known: dict[str, str] = {}
        self._requested: set[str] = set()
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._lock = Lock()

    def base_name(self, entry: McpEntry) -> str:
        """Return the name that a skill has when no other skill has it."""
        return f"{self._label}:{entry.name}"

    def name_all(self, entries: Sequence[McpEntry]) -> dict[str, str]:
        """Return the name of each skill of a new listing, by address."""
        with self._lock:
            remaining = self._requested.union(entry.uri for entry in entries)
            self._known = {uri: name for uri, name in self._known.items() if uri in remaining}
            self._taken = set(self._known.values())
            self._numbers.clear()  # names were given back, so numbers may be free again
            return {entry.uri: self._name_entry(entry) for entry in entries}

    def name_one(self, entry: McpEntry) -> str:
        """Return the name of a skill that the caller asked for by its address."""
        with self._lock:
            self._requested.add(entry.uri)
            return self._name_entry(entry)

    def _name_entry(self, entry: McpEntry) -> str:
        known = self._known.get(entry.uri)
        if known is not None:
            return known
        base = name = self.base_name(entry)
        number = self._numbers.get(base, 2)  # where the last search ended: thousands of equal names stay fast
        while name in self._taken:
            name, number = f"{base}-{number}", number + 1
        self._numbers[base] = number
        self._taken.add(name)
        self._known[entry.uri] = name
        return name


_MAX_CURSOR_LENGTH = 4_096


class _McpListing:
    """The entries that are used, and issues about the others, as far as the server has listed them."""

    def __init__(self, connection: McpConnection, limits: Limits) -> None:
        self.entries: list[McpEntry] = []
        self.issues: list[Issue] = []
        self.has_page = False
        """True when at least one page came."""
        self._connection = connection
        self._max_skills = limits.max_mcp_skills
        self._server = f"MCP server {connection.server.label!r}"
        self._namespace = f"mcp:{connection.server.label}"
        self._addresses: set[str] = set()
        self._cursors: set[bytes] = set()

    def read_pages(self, deadline: float) -> None:
        """Connect, and ask for every page. After a ``FetchError``, the entries of earlier pages stay."""
        with self._connection.quota.reserve("max_mcp_list_bytes"):
            self.check_extension(deadline)
            params: dict[str, Any] | None = {}
            while params is not None:
                answer = self._connection.send_request("skills/list", params, deadline)
                params = self._add_page(answer, deadline)

    def check_extension(self, deadline: float = math.inf) -> None:
        """Raise ``FetchError`` unless the server declares the extension for skills."""
        extensions = self._connection.capabilities(deadline).get("extensions")
        if not isinstance(extensions, dict) or EXTENSION not in extensions:
            raise FetchError(f"{self._server} declares no skills", self._namespace, "no-extension")

    def report_stop(self, error: FetchError) -> None:
        """Add an issue that says why the listing ended early."""
        message = f"{error.message}; the {len(self.entries)} skills that were listed before are used"
        self.issues.append(Issue(error.code, "", message, self._namespace))

    def _add_page(self, answer: dict[str, Any], deadline: float) -> dict[str, Any] | None:
        """Add the entries of a page; return the parameters for the next page, or ``None`` when this is the last one."""
        raw_entries = answer.get("skills")
        if not isinstance(raw_entries, list):
            raise FetchError(f"{self._server}: the listing is not a list", self._namespace, "bad-entry")
        self.has_page = True
        for raw in raw_entries:
            # Bad entries count too: they cost time, and each makes an issue.
            if len(self.entries) + len(self.issues) >= self._max_skills:
                self._report_excess()
                return None
            if time.monotonic() > deadline:
                raise FetchError(f"{self._server}: the listing takes too long", self._namespace, "mcp-timeout")
            self._add_entry(raw)
        cursor = answer.get("nextCursor")
        # A cursor that comes twice leads in a circle.
        if cursor is not None and not self._is_new_cursor(cursor):
            self._report_excess()
            return None
        return None if cursor is None else {"cursor": cursor}

    def _add_entry(self, raw: object) -> None:
        try:
            entry = parse_entry(raw, self._connection.limits)
        except FetchError as error:
            self._add_warning(error.code, f"is not used: {error.message}")
            return
        if entry.uri in self._addresses:
            self._add_warning("bad-entry", f"{entry.uri} is listed twice")
            return
        self._addresses.add(entry.uri)
        self.entries.append(entry)

    def _add_warning(self, code: str, message: str) -> None:
        self.issues.append(Issue(code, "", message, self._namespace, 0, "warning"))

    def _is_new_cursor(self, cursor: object) -> bool:
        if not isinstance(cursor, str) or len(cursor) > _MAX_CURSOR_LENGTH or len(self._cursors) >= self._max_skills:
            return False
        digest = hashlib.sha256(cursor.encode("utf-8", "surrogatepass")).digest()  # 32 bytes, however long cursors are
        if digest in self._cursors:
            return False
        self._cursors.add(digest)
        return True

    def _report_excess(self) -> None:
        message = f"the listing of {self._server} is too long; {len(self.entries)} skills are used"
        self.issues.append(Issue("endless-listing", "", message, self._namespace))
