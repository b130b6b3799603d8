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

    QuotaLimit = Literal["max_mcp_message_bytes", "max_mcp_list_bytes"]

_VALUE_WEIGHT = 32
_STRING = re.compile(rb'"[^"\\\n]*+(?:\\[^\n]?[^"\\\n]*+)*+["\n]')


class JsonMeter:
    """Weighs JSON in pieces: its bytes, and something for each value. No text goes on after the end of a line."""

    def __init__(self) -> None:
        self._inside = b""

    def measure(self, chunk: bytes) -> int:
        """What the next piece weighs."""
        bare = _STRING.sub(b"", self._inside + chunk)
        at = bare.find(b'"')
        self._inside = b"" if at < 0 else _open_string_prefix(bare[at:])
        bare = bare if at < 0 else bare[:at]
        return len(chunk) + _VALUE_WEIGHT * (bare.count(b",") + bare.count(b"[") + bare.count(b"{"))


def _open_string_prefix(text: bytes) -> bytes:
    """What stands for a text that goes on in the next piece: its quote, and a backslash that waits for its letter."""
    waiting = len(text) - len(text.rstrip(b"\\"))
    return b'"\\' if waiting % 2 else b'"'


class ReceiveQuota:
    """What a server may still send, over all its connections; while nothing is asked, as much as for one request.

    What was asked for adds up, and what was not used of it ends with the question.
    """

    def __init__(self, limits: Limits) -> None:
        self._bounds: dict[QuotaLimit, int] = {
            "max_mcp_message_bytes": limits.max_mcp_message_bytes,
            "max_mcp_list_bytes": limits.max_mcp_list_bytes,
        }
        self._reserved: list[QuotaLimit] = []
        self._lock = Lock()
        self._left = self._bounds["max_mcp_message_bytes"]
        self.excess_reason = ""
        """What was more than allowed, in words; then the connection is ended."""
        self.refusal_reason = ""
        """Why the server did not let us in, in words."""

    @contextmanager
    def reserve(self, bound: QuotaLimit) -> Iterator[None]:
        """While the block lasts, as much as that field of ``Limits`` says may come."""
        with self._lock:
            if not self._reserved:
                self._left, self.excess_reason = 0, ""
            self._reserved.append(bound)
            self._left += self._bounds[bound]
        try:
            yield
        finally:
            with self._lock:
                self._reserved.remove(bound)
                self._left = (
                    min(self._left, self._reserved_bytes()) if self._reserved else self._bounds["max_mcp_message_bytes"]
                )

    def consume(self, weight: int) -> bool:
        """Whether so much more is allowed; if not, ``excess_reason`` says so."""
        with self._lock:
            self._left -= weight
            if self._left < 0:
                self._mark_exceeded(self._reserved[0] if self._reserved else "max_mcp_message_bytes")
            return not self.excess_reason

    def mark_exceeded(self, bound: QuotaLimit) -> None:
        """Take nothing more: a single message was too long."""
        with self._lock:
            self._mark_exceeded(bound)

    def _mark_exceeded(self, bound: QuotaLimit) -> None:
        self.excess_reason = (
            self.excess_reason or f"it sent more than {self._bounds[bound]} bytes allow (Limits.{bound})"
        )

    def _reserved_bytes(self) -> int:
        return sum(self._bounds[bound] for bound in self._reserved)
