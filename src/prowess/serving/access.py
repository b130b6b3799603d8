"""Who may send requests to an HTTP server, by its names, the origin of a page and the token, and how it refuses.

The ``Host`` must be one of the server's own names, so that no page can reach the server under a name of its own (DNS
rebinding). An ``Origin``, which only browsers send, must be the server's own or a named one. A token, where the server
has one, must be right.
"""

from __future__ import annotations

import hmac
import math
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]


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


LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
_HTTP_PORT = 80
_NO_PORT = -1


NO_TOKEN = Refusal(401, "a token is needed", ((b"www-authenticate", b"Bearer"),))
WRONG_TOKEN = Refusal(401, "the token is wrong", ((b"www-authenticate", b'Bearer error="invalid_token"'),))


class Access(NamedTuple):
    """Who may send requests: the names that the server goes by, further pages, and the token."""

    hosts: frozenset[str]
    """The server's own names, which are valid only with its own port."""
    names: frozenset[str] = frozenset()
    """The names under which proxies pass requests on to the server, valid with any port."""
    origins: frozenset[str] = frozenset()
    token: str | None = None

    def find_refusal(self, scope: Scope) -> Refusal | None:
        """Return why a request is refused, or ``None`` when it may pass."""
        headers = read_headers(scope)
        host = headers.get(b"host", "")
        if not self._is_own_host(host, scope):
            return Refusal(421, "this server does not go by that name: start it with --allow-host NAME")
        origin = headers.get(b"origin")
        if origin is not None and not self._is_allowed_origin(origin, host):
            return Refusal(403, "pages of that origin may not ask: start the server with --allow-origin URL")
        given = headers.get(b"authorization", "")
        if self.token is not None and not _is_right_token(given, self.token):
            return WRONG_TOKEN if given else NO_TOKEN
        return None

    def _is_own_host(self, host: str, scope: Scope) -> bool:
        name, port = _split_host(host)
        address, own_port = scope.get("server") or ("", None)
        # A proxy may listen on any port, so its name counts with each, but a malformed one is refused.
        if name in self.names:
            return port != _NO_PORT
        return (name in self.hosts or name == address) and own_port == (port or _HTTP_PORT)

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        if origin in self.origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()


def make_access(host: str, names: Iterable[str], origins: Iterable[str], token: str | None) -> Access:
    """Return who may send requests to a server that is bound to ``host``."""
    # A server that listens on every address has no name of its own: "0.0.0.0" in a Host would be a forged one.
    own = {host.lower()} if host not in {"", "0.0.0.0", "::"} else set()  # noqa: S104 - compared, not bound
    proxies = frozenset(name.lower() for name in names)
    return Access(frozenset((*LOOPBACK_HOSTS, *own)), proxies, frozenset(origins), token)


def read_headers(scope: Scope) -> dict[bytes, str]:
    """Return the headers of a request; one that comes twice gets a value that matches nothing.

    Two values for one header are how a request says one thing to a proxy and another thing to the server.
    """
    headers: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        headers[name] = value.decode("latin-1") if name not in headers else "\0"
    return headers


def read_client_address(scope: Scope) -> str:
    """Return the address that a request comes from; ``""`` where the server does not say."""
    return str((scope.get("client") or ("",))[0])


def _split_host(host: str) -> tuple[str, int | None]:
    """Return the name and the port of a ``Host``; the port is ``_NO_PORT`` when the value is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port
    except ValueError:
        return "", _NO_PORT
    is_malformed = not host or parts.path or parts.query or parts.fragment or "@" in host
    return ("", _NO_PORT) if is_malformed else (parts.hostname or "", port)


def _is_right_token(given: str, token: str) -> bool:
    kind, _, value = given.partition(" ")
    # Compared in constant time: how long a comparison takes must not show how much of a guess is right.
    return kind.lower() == "bearer" and hmac.compare_digest(value.strip().encode(), token.encode())
