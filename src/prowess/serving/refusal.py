"""Requests that are refused: the reason, and the answer with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from prowess.serving.access import Send

_PLAIN_TEXT_HEADERS = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]


class Refusal(NamedTuple):
    """A request that is refused: the status, the message and further headers of the response."""

    status: int
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


def make_guess_refusal(wait: float) -> Refusal:
    """Return the refusal of a client that sent too many wrong tokens, and may send the next one in ``wait`` seconds."""
    return Refusal(429, "too many wrong tokens", ((b"retry-after", b"%d" % math.ceil(wait)),))


async def send_refusal(refusal: Refusal, send: Send) -> None:
    """Answer a request with the reason why it is refused."""
    # The connection ends with a refusal, since the rest of a refused body may still be on its way.
    headers = [*_PLAIN_TEXT_HEADERS, *refusal.headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{refusal.message}\n".encode()})
