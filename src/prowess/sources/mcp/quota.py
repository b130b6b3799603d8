"""How much an MCP server may send: as much as was asked for, weighed as it comes in, before anything is parsed.

A few bytes of JSON can become many in memory, so every value weighs more than the bytes that it is written with.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.limits import Limits

    Bound = Literal["max_mcp_message_bytes", "max_mcp_list_bytes"]

_VALUE = 32
_STRING = re.compile(rb'"[^"\\\n]*+(?:\\[^\n]?[^"\\\n]*+)*+["\n]')


class Scale:
    """Weighs JSON in pieces: its bytes, and something for each value. No text goes on after the end of a line."""

    def __init__(self) -> None:
        self._inside = b""

    def weigh(self, chunk: bytes) -> int:
        """What the next piece weighs."""
        bare = _STRING.sub(b"", self._inside + chunk)
        at = bare.find(b'"')
        self._inside = b"" if at < 0 else _beginning(bare[at:])
        bare = bare if at < 0 else bare[:at]
        return len(chunk) + _VALUE * (bare.count(b",") + bare.count(b"[") + bare.count(b"{"))


def _beginning(text: bytes) -> bytes:
    """What stands for a text that goes on in the next piece: its quote, and a backslash that waits for its letter."""
    waiting = len(text) - len(text.rstrip(b"\\"))
    return b'"\\' if waiting % 2 else b'"'


class Allowance:
    """What a server may still send, over all its connections; while nothing is asked, as much as for one request.

    What was asked for adds up, and what was not used of it ends with the question.
    """

    def __init__(self, limits: Limits) -> None:
        self._bounds: dict[Bound, int] = {
            "max_mcp_message_bytes": limits.max_mcp_message_bytes,
            "max_mcp_list_bytes": limits.max_mcp_list_bytes,
        }
        self._asked: list[Bound] = []
        self._lock = Lock()
        self._left = self._bounds["max_mcp_message_bytes"]
        self.over = ""
        """What was more than allowed, in words; then the connection is ended."""
        self.refused = ""
        """Why the server did not let us in, in words."""

    @contextmanager
    def asking(self, bound: Bound) -> Iterator[None]:
        """While the block lasts, as much as that field of ``Limits`` says may come."""
        with self._lock:
            if not self._asked:
                self._left, self.over = 0, ""
            self._asked.append(bound)
            self._left += self._bounds[bound]
        try:
            yield
        finally:
            with self._lock:
                self._asked.remove(bound)
                self._left = min(self._left, self._most()) if self._asked else self._bounds["max_mcp_message_bytes"]

    def takes(self, weight: int) -> bool:
        """Whether so much more is allowed; if not, ``over`` says so."""
        with self._lock:
            self._left -= weight
            if self._left < 0:
                self._exceed(self._asked[0] if self._asked else "max_mcp_message_bytes")
            return not self.over

    def exceed(self, bound: Bound) -> None:
        """Take nothing more: a single message was too long."""
        with self._lock:
            self._exceed(bound)

    def _exceed(self, bound: Bound) -> None:
        self.over = self.over or f"it sent more than {self._bounds[bound]} bytes allow (Limits.{bound})"

    def _most(self) -> int:
        return sum(self._bounds[bound] for bound in self._asked)
