"""The quota of an MCP server: how much it may send, measured as the bytes come in, before anything is parsed.

A few bytes of JSON can become many bytes in memory. So each value weighs more than the bytes that it is written with.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Literal

from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.limits import Limits

    QuotaLimit = Literal["max_mcp_message_bytes", "max_mcp_list_bytes"]

_VALUE_WEIGHT = 32  # bytes: about what a small Python object takes besides its content
# Possessive (*+), so that no input makes the patterns go back. A string that is still open at the end is a string too:
# otherwise each quote that is escaped in it would be tried as the beginning of another one.
_OPENED = rb'"[^"\\\n]*+(?:\\[^\n]?[^"\\\n]*+)*+'
_STRING = compile_pattern(_OPENED + rb'(?:["\n]|\Z)')
_CLOSED_PART = compile_pattern(rb'(?:[^"]++|' + _OPENED + rb'["\n])*+')


class JsonMeter:
    """Measures JSON in pieces: its bytes, and a weight for each value. A string ends at the end of its line at last."""

    def __init__(self) -> None:
        self._open_string = b""

    def measure(self, chunk: bytes) -> int:
        """Return the weight of the next piece."""
        # Commas and brackets count the values; those inside of strings must not, so strings are taken out first.
        data = self._open_string + chunk
        bare = _STRING.sub(b"", data)
        end = _CLOSED_PART.match(data).end()  # type: ignore[union-attr]  # it matches nothing at least
        # Of a string that goes on in the next piece, its quote is kept, and a backslash that escapes the next byte.
        backslashes = len(data) - len(data.rstrip(b"\\"))
        self._open_string = data[end : end + 1] and b'"' + b"\\" * (backslashes % 2)
        return len(chunk) + _VALUE_WEIGHT * (bare.count(b",") + bare.count(b"[") + bare.count(b"{"))


class ReceiveQuota:
    """How much a server may still send, over all its connections.

    Each open request adds to it, and what a request has not used ends with the request. While no request is open, the
    server may send as much as for one.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits: dict[QuotaLimit, int] = {
            "max_mcp_message_bytes": limits.max_mcp_message_bytes,
            "max_mcp_list_bytes": limits.max_mcp_list_bytes,
        }
        self._reserved: list[QuotaLimit] = []
        self._lock = Lock()
        self._left = self._limits["max_mcp_message_bytes"]
        self.excess_reason = ""
        """Which limit was exceeded, in words; ``""`` while none is. A connection that exceeds one is closed."""
        self.refusal_reason = ""
        """Why the server refused the connection, in words; ``""`` when it did not."""

    @contextmanager
    def reserve(self, limit: QuotaLimit) -> Iterator[None]:
        """Let as much come as that field of ``Limits`` says, until the end of the ``with`` block."""
        with self._lock:
            # Nothing of the time between requests counts against this one, nor for it.
            if not self._reserved:
                self._left, self.excess_reason = 0, ""
            self._reserved.append(limit)
            self._left += self._limits[limit]
        try:
            yield
        finally:
            with self._lock:
                # Requests may overlap: those that are still open keep what they have reserved, and no more.
                self._reserved.remove(limit)
                reserved = sum(self._limits[name] for name in self._reserved)
                self._left = min(self._left, reserved) if self._reserved else self._limits["max_mcp_message_bytes"]

    def consume(self, weight: int) -> bool:
        """Take ``weight`` from the quota; return ``False`` when it is exceeded, and set ``excess_reason``."""
        with self._lock:
            self._left -= weight
            if self._left < 0:
                self._set_excess(self._reserved[0] if self._reserved else "max_mcp_message_bytes")
            return not self.excess_reason

    def report_excess(self, limit: QuotaLimit) -> None:
        """Let nothing more come, because a single message was too long."""
        with self._lock:
            self._set_excess(limit)

    def _set_excess(self, limit: QuotaLimit) -> None:
        self.excess_reason = (
            self.excess_reason or f"it sent more than {self._limits[limit]} bytes allow (Limits.{limit})"
        )
