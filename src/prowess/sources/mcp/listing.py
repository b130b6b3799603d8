"""Reads the list of skills of an MCP server, page by page, within one deadline, one quota and one number of skills."""

from __future__ import annotations

import hashlib
import math
import time
from typing import TYPE_CHECKING, Any

from prowess.errors import FetchError, Issue
from prowess.sources.mcp import EXTENSION
from prowess.sources.mcp.entry import parse_entry

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.sources.mcp.connection import McpConnection
    from prowess.sources.mcp.entry import McpEntry

_MAX_CURSOR_LENGTH = 4_096


class McpListing:
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
        message = f"the listing of {self._server} goes on for too long; {len(self.entries)} skills are used"
        self.issues.append(Issue("endless-listing", "", message, self._namespace))
