"""What stands before a server on HTTP: who may ask, from which pages, how much and how often.

The ``Host`` must be one of ours, so that no page can reach the server under a name of its own (DNS rebinding); an
``Origin``, which only browsers send, must be our own or a named one; a token, where there is one, must be right.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    from prowess.limits import Limits

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
_HTTP_PORT = 80
_NO_PORT = -1
_MAX_LENGTH_DIGITS = 20
_MAX_TRACKED_CLIENTS = 1_024
_MAX_DOUBLINGS = 64
_FREE_BODY_BYTES = 64 * 1024
_PLAIN_TEXT_HEADERS = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]


class Refusal(NamedTuple):
    """An answer that is no."""

    status: int
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


_NO_TOKEN = Refusal(401, "a token is needed", ((b"www-authenticate", b"Bearer"),))
_WRONG_TOKEN = Refusal(401, "the token is wrong", ((b"www-authenticate", b'Bearer error="invalid_token"'),))


class Access(NamedTuple):
    """Who may ask: the names that the server goes by, further pages, and the token."""

    hosts: frozenset[str]
    """Its own, which go with its own port."""
    names: frozenset[str] = frozenset()
    """Those under which others pass requests on to it, with whatever port they have."""
    origins: frozenset[str] = frozenset()
    token: str | None = None

    def find_refusal(self, scope: Scope) -> Refusal | None:
        """Why a request is not answered."""
        headers = _read_headers(scope)
        host = headers.get(b"host", "")
        if not self._is_own_host(host, scope):
            return Refusal(421, "this server does not go by that name: start it with --allow-host NAME")
        origin = headers.get(b"origin")
        if origin is not None and not self._is_allowed_origin(origin, host):
            return Refusal(403, "pages of that origin may not ask: start the server with --allow-origin URL")
        given = headers.get(b"authorization", "")
        if self.token is not None and not _is_right_token(given, self.token):
            return _WRONG_TOKEN if given else _NO_TOKEN
        return None

    def _is_own_host(self, host: str, scope: Scope) -> bool:
        name, port = _split_host(host)
        address, own = scope.get("server") or ("", None)
        if name in self.names:
            return port != _NO_PORT
        return (name in self.hosts or name == address) and own == (port or _HTTP_PORT)

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        if origin in self.origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()


def _read_headers(scope: Scope) -> dict[bytes, str]:
    """The headers that count; one that comes twice is no header that can be believed."""
    found: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        found[name] = value.decode("latin-1") if name not in found else "\0"
    return found


def _split_host(host: str) -> tuple[str, int | None]:
    """Name and port of a ``Host``."""
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port
    except ValueError:
        return "", _NO_PORT
    odd = not host or parts.path or parts.query or parts.fragment or "@" in host
    return ("", _NO_PORT) if odd else (parts.hostname or "", port)


def _is_right_token(given: str, token: str) -> bool:
    kind, _, value = given.partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(value.strip().encode(), token.encode())


class RateLimiter:
    """At most so many in a second, after a burst of as many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = float(most)
        self._at = time.monotonic()

    def allow_request(self) -> bool:
        """Whether one more may pass now."""
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._at) * self._most)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class ClientRateLimiter:
    """The same for each of those who ask; of too many, the one that was longest silent is forgotten."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limiters: dict[str, RateLimiter] = {}

    def allow_request(self, who: str) -> bool:
        """Whether that one may ask now."""
        rate = self._limiters.pop(who, None) or RateLimiter(self._most)
        self._limiters[who] = rate
        if len(self._limiters) > _MAX_TRACKED_CLIENTS:
            del self._limiters[next(iter(self._limiters))]
        return rate.allow_request()


class TokenGuesses(NamedTuple):
    """What is remembered of an address that sent tokens."""

    wrong: int = 0
    """How many wrong ones were judged."""
    until: float = 0.0
    """When the next one is judged."""
    is_known: bool = False
    """Whether it has sent the right one."""


class WrongTokens:
    """The wrong tokens of each address: ``most`` are free, then each one that is judged doubles the wait for the next.

    During a wait no token of the address is judged, the right one neither: whoever guesses would learn it. An address
    that has sent the right one before is judged always, because all programs of this machine, and all clients behind
    one proxy, share an address, and nobody must be able to lock out a client that is at work.
    Of more than 1,024 addresses the one that was longest silent is forgotten, so an attacker cannot fill the memory.
    """

    def __init__(self, most: int, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._longest = longest
        self._clock = clock
        self._guesses: dict[str, TokenGuesses] = {}

    def __len__(self) -> int:
        return len(self._guesses)

    def wait_seconds(self, address: str) -> float:
        """For how many seconds no token of an address is judged."""
        guesses = self._guesses.get(address)
        return 0.0 if guesses is None or guesses.is_known else max(0.0, guesses.until - self._clock())

    def record_right(self, address: str) -> None:
        """Remember that an address sent the right token."""
        self._remember(address, self._guesses.get(address, TokenGuesses())._replace(is_known=True))

    def record_wrong(self, address: str) -> float:
        """Count a wrong token, and return for how many seconds its address has to wait; 0 when it was judged.

        One that comes during a wait is not counted: whoever is impatient does not wait longer.
        """
        now = self._clock()
        guesses = self._guesses.get(address, TokenGuesses(until=now))
        wait = max(0.0, guesses.until - now)
        if not wait:
            wrong = 1 if now - guesses.until > self._longest else guesses.wrong + 1
            # Cut before the power is taken: a float has an end.
            doublings = min(wrong - self._most, _MAX_DOUBLINGS)
            next_wait = min(2.0**doublings, self._longest) if wrong >= self._most else 0.0
            guesses = guesses._replace(wrong=wrong, until=now + next_wait)
        self._remember(address, guesses)
        return wait

    def _remember(self, address: str, guesses: TokenGuesses) -> None:
        self._guesses.pop(address, None)
        self._guesses[address] = guesses  # at the end of the dictionary: the latest
        if len(self._guesses) > _MAX_TRACKED_CLIENTS:
            del self._guesses[next(iter(self._guesses))]


class RequestGuard:
    """An application that lets the right requests through to another."""

    def __init__(self, app: App, access: Access, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._access = access
        self._limits = limits
        self._rate_limiter = ClientRateLimiter(limits.max_http_requests)
        self._wrong_tokens = WrongTokens(limits.max_http_wrong_tokens, limits.max_http_token_wait_seconds, clock)
        self._body_quota = BodyQuota(limits.max_http_waiting_bytes)
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._find_access_refusal(scope) or self._find_limit_refusal(scope)
        if refusal is not None:
            await _send_refusal(refusal, send)
            return
        if scope["method"] != "GET":
            await self._forward_with_body(scope, receive, send)
            return
        self._streams += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._streams -= 1

    async def _forward_with_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on once it is whole; one that breaks off is nobody's concern."""
        with self._body_quota.open_share() as share:
            try:
                async with asyncio.timeout(self._limits.max_http_body_seconds):
                    body = await _read_body(receive, self._limits.max_http_body_bytes, share)
            except TimeoutError:
                await _send_refusal(Refusal(408, "the request takes too long"), send)
                return
            except _TooLargeError:
                await _send_refusal(Refusal(413, "the request is too large"), send)
                return
            except _QuotaExceededError:
                await _send_refusal(Refusal(429, "too many large requests", ((b"retry-after", b"1"),)), send)
                return
            if body is not None:
                await self._app(scope, _replay_body(body, receive), share.wrap_send(send))

    def _find_access_refusal(self, scope: Scope) -> Refusal | None:
        """Why somebody may not ask: as ``Access`` says, or because an address that guesses tokens has to wait."""
        if self._access.token is None:
            return self._access.find_refusal(scope)
        address = _client_address(scope)
        wait = self._wrong_tokens.wait_seconds(address) if b"authorization" in _read_headers(scope) else 0.0
        if wait:
            return _make_guess_refusal(wait)
        refusal = self._access.find_refusal(scope)
        if refusal is None:
            self._wrong_tokens.record_right(address)
        elif refusal is _WRONG_TOKEN and (wait := self._wrong_tokens.record_wrong(address)):
            return _make_guess_refusal(wait)
        return refusal

    def _find_limit_refusal(self, scope: Scope) -> Refusal | None:
        if not self._rate_limiter.allow_request(_client_address(scope)):
            return Refusal(429, "too many requests", ((b"retry-after", b"1"),))
        headers = _read_headers(scope)
        if _parse_content_length(headers.get(b"content-length", "0")) > self._limits.max_http_body_bytes:
            return Refusal(413, "the request is too large")
        if headers.get(b"content-encoding", "identity").lower() != "identity":
            return Refusal(415, "send the request as it is, not compressed")
        if scope["method"] == "GET" and self._streams >= self._limits.max_http_streams:
            return Refusal(429, "too many open streams", ((b"retry-after", b"10"),))
        return None


def _make_guess_refusal(wait: float) -> Refusal:
    return Refusal(429, "too many wrong tokens", ((b"retry-after", b"%d" % math.ceil(wait)),))


def _client_address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _parse_content_length(length: str) -> float:
    """How many bytes a request says that it has."""
    return float(length) if length.isdecimal() and len(length) < _MAX_LENGTH_DIGITS else float("inf")


class _TooLargeError(Exception):
    """More than a request may have."""


class _QuotaExceededError(Exception):
    """More than all requests together may have."""


class BodyQuota:
    """Bytes of requests that may wait at one time; small requests need none of it, so they always pass."""

    def __init__(self, most: int) -> None:
        self.bytes_left = most

    def open_share(self) -> QuotaShare:
        """What one request takes of it."""
        return QuotaShare(self)


class QuotaShare:
    """What one request takes, until it is answered; a context manager."""

    def __init__(self, room: BodyQuota) -> None:
        self._quota = room
        self._taken = 0

    def grow_to(self, size: int) -> None:
        """Hold so many bytes from now on."""
        wanted = max(0, size - _FREE_BODY_BYTES) - self._taken
        if wanted > self._quota.bytes_left:
            raise _QuotaExceededError
        self._quota.bytes_left -= wanted
        self._taken += wanted

    def release(self) -> None:
        """Hold nothing any more."""
        self._quota.bytes_left += self._taken
        self._taken = 0

    def wrap_send(self, send: Send) -> Send:
        """The way out: with the first word of the answer the request is done with."""

        async def release_and_send(message: Message) -> None:
            self.release()
            await send(message)

        return release_and_send

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


async def _read_body(receive: Receive, most: int, share: QuotaShare) -> bytes | None:
    """Everything that a client sends with a request; ``None`` when it hangs up before the end."""
    whole = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        whole += message.get("body", b"")
        if len(whole) > most:
            raise _TooLargeError
        share.grow_to(len(whole))
        if not message.get("more_body", False):
            return bytes(whole)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """What gives the body again, then whatever comes after it."""
    waiting = [body]
    del body  # an answer may stay open for long

    async def receive_again() -> Message:
        if not waiting:
            return await receive()
        return {"type": "http.request", "body": waiting.pop(), "more_body": False}

    return receive_again


async def _send_refusal(refusal: Refusal, send: Send) -> None:
    headers = [*_PLAIN_TEXT_HEADERS, *refusal.headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{refusal.message}\n".encode()})


def make_access(host: str, names: Iterable[str], origins: Iterable[str], token: str | None) -> Access:
    """Who may ask a server that is bound to ``host``."""
    own = {host.lower()} if host not in {"", "0.0.0.0", "::"} else set()  # noqa: S104 - compared, not bound
    others = frozenset(name.lower() for name in names)
    return Access(frozenset((*LOOPBACK_HOSTS, *own)), others, frozenset(origins), token)
