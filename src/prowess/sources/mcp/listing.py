"""What an MCP server lists, page by page: within one deadline, one allowance and one number of skills."""

from __future__ import annotations

import hashlib
import math
import time
from typing import TYPE_CHECKING, Any

from prowess.errors import FetchError, Issue
from prowess.sources.mcp.connection import EXTENSION
from prowess.sources.mcp.entry import parse_entry

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.sources.mcp.connection import McpConnection
    from prowess.sources.mcp.entry import McpEntry

_MAX_CURSOR_LENGTH = 4_096


class McpListing:
    """The entries that are used, and what was wrong with the others, as far as the server has told."""

    def __init__(self, link: McpConnection, limits: Limits) -> None:
        self.entries: list[McpEntry] = []
        self.issues: list[Issue] = []
        self.has_page = False
        """Whether there was a page at all."""
        self._connection = link
        self._most = limits.max_mcp_skills
        self._server = f"MCP server {link.server.label!r}"
        self._where = f"mcp:{link.server.label}"
        self._addresses: set[str] = set()
        self._cursors: set[bytes] = set()

    def read_pages(self, until: float) -> None:
        """Connect, and ask for every page; what was listed before a ``FetchError`` stays."""
        with self._connection.quota.reserve("max_mcp_list_bytes"):
            self.check_extension(until)
            params: dict[str, Any] | None = {}
            while params is not None:
                answer = self._connection.send_request("skills/list", params, until)
                params = self._add_page(answer, until)

    def check_extension(self, until: float = math.inf) -> None:
        """Raise unless the server said that it has skills: only then is it asked for them."""
        extensions = self._connection.capabilities(until).get("extensions")
        if not isinstance(extensions, dict) or EXTENSION not in extensions:
            raise FetchError(f"{self._server} declares no skills", self._where, "no-extension")

    def report_stop(self, error: FetchError) -> None:
        """Say why the listing ended early."""
        message = f"{error.message}; the {len(self.entries)} skills that were listed before are used"
        self.issues.append(Issue(error.code, "", message, self._where))

    def _add_page(self, answer: dict[str, Any], until: float) -> dict[str, Any] | None:
        """Add what is on a page; what to ask for the next one, ``None`` when there is none."""
        rows = answer.get("skills")
        if not isinstance(rows, list):
            raise FetchError(f"{self._server}: the listing is no list", self._where, "bad-entry")
        self.has_page = True
        for raw in rows:
            if len(self.entries) + len(self.issues) >= self._most:
                self._report_cut()
                return None
            if time.monotonic() > until:
                raise FetchError(f"{self._server}: the listing takes too long", self._where, "mcp-timeout")
            self._add_entry(raw)
        cursor = answer.get("nextCursor")
        if cursor is not None and not self._is_new_cursor(cursor):
            self._report_cut()
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
        self.issues.append(Issue(code, "", message, self._where, 0, "warning"))

    def _is_new_cursor(self, cursor: object) -> bool:
        if not isinstance(cursor, str) or len(cursor) > _MAX_CURSOR_LENGTH or len(self._cursors) >= self._most:
            return False
        mark = hashlib.sha256(cursor.encode("utf-8", "surrogatepass")).digest()
        if mark in self._cursors:
            return False
        self._cursors.add(mark)
        return True

    def _report_cut(self) -> None:
        message = f"the listing of {self._server} goes on for too long; {len(self.entries)} skills are used"
        self.issues.append(Issue("endless-listing", "", message, self._where))
