"""The guard of the console: who may look, who may change something, and the headers of every answer.

Cookies do not know ports, and to a browser every port of this machine is the same site. So a cookie alone allows
nothing but looking: a change also needs the console's own origin and the token that its forms carry.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from prowess.serving.access import Refusal, make_guess_refusal, read_client_address, read_headers, send_refusal
from prowess.serving.rate_limits import WrongTokens
from prowess.serving.request_body import BodyForwarder

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.serving.access import Access, App, Message, Receive, Scope, Send

TOKEN_PARAMETER = "token"  # noqa: S105 - the name of a parameter
FORM_TOKEN_FIELD = "form-token"  # noqa: S105 - the name of a field
FORM_TOKEN_HEADER = b"x-form-token"
_WRONG_HOST_STATUS = 421
_READING = frozenset(("GET", "HEAD"))
_FORM = "application/x-www-form-urlencoded"
_OWN_SITE = frozenset(("same-origin", "none"))
_CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = (
    (b"content-security-policy", _CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # No other host hears of an address. With "no-referrer" a browser would send the Origin "null" with the own forms.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)

_NO_COOKIE = Refusal(403, "open the address that 'prowess ui' printed: it has the token that this page needs")
_WRONG_TOKEN = Refusal(403, "the token is wrong: open the address that 'prowess ui' printed")
_OTHER_ORIGIN = Refusal(403, "only the console's own pages may ask this")
_NO_FORM_TOKEN = Refusal(403, "the form has no right token: load the page again, and send it once more")
_READ_ONLY = Refusal(405, "this console only shows: it was started with --read-only", ((b"allow", b"GET, HEAD"),))
_NO_FORM = Refusal(415, "only forms without files are taken")
_BAD_METHOD = Refusal(405, "only GET, HEAD and POST are taken", ((b"allow", b"GET, HEAD, POST"),))


class ConsoleGuard:
    """An ASGI application before the console: it refuses what may not pass, and adds the headers of security.

    ``token`` is what the first address has. ``may_change`` is False for a console that only shows.
    """

    def __init__(self, app: App, access: Access, token: str, limits: Limits, *, may_change: bool) -> None:
        self._app = app
        self._access = access
        self._token = token
        self._limits = limits
        self._may_change = may_change
        # A new key each time: cookies of an earlier run of the console are worth nothing.
        self._key = secrets.token_bytes(32)
        self._wrong_tokens = WrongTokens(limits.max_http_wrong_tokens, limits.max_http_token_wait_seconds)
        self._bodies = BodyForwarder(app, limits)
        self._open_requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _add_security_headers(send)
        refusal = self._find_refusal(scope)
        if refusal is not None:
            await send_refusal(refusal, send)
            return
        if TOKEN_PARAMETER in dict(_read_query(scope)):
            await self._answer_token(scope, send)
            return
        session = self._find_session(scope)
        if session is None:
            await send_refusal(_NO_COOKIE, send)
            return
        scope.setdefault("state", {})["form_token"] = self._sign("form", session)
        if scope["method"] == "POST":
            await self._forward_change(scope, receive, send)
        else:
            await self._forward_reading(scope, receive, send)

    def _find_refusal(self, scope: Scope) -> Refusal | None:
        """Return why a request is refused whoever sends it, or ``None``."""
        refusal = self._access.find_refusal(scope)
        if refusal is not None:  # by the Host, or else by the Origin
            return refusal if refusal.status == _WRONG_HOST_STATUS else _OTHER_ORIGIN
        headers = read_headers(scope)
        if scope["method"] not in {*_READING, "POST"}:
            return _BAD_METHOD
        if scope["method"] == "POST":
            if not self._may_change:
                return _READ_ONLY
            # Without an Origin nobody knows which page sent a form. Every browser sends it with a POST.
            return _OTHER_ORIGIN if b"origin" not in headers or not _is_own_site(headers) else None
        # Another page may lead a person here by a link, but it may not load anything from here into itself.
        is_navigation = headers.get(b"sec-fetch-mode") == "navigate" and headers.get(b"sec-fetch-dest") == "document"
        return None if is_navigation or _is_own_site(headers) else _OTHER_ORIGIN

    # -- who looks ---------------------------------------------------------------------------------------------------

    async def _answer_token(self, scope: Scope, send: Send) -> None:
        """Answer the first address: a right token gives a cookie, and the browser is sent on without the token."""
        address = read_client_address(scope)
        if wait := self._wrong_tokens.wait_seconds(address):
            await send_refusal(make_guess_refusal(wait), send)
            return
        query = _read_query(scope)
        given = dict(query)[TOKEN_PARAMETER]
        # Compared in constant time: how long a comparison takes must not show how much of a guess is right.
        if scope["method"] not in _READING or not hmac.compare_digest(given.encode(), self._token.encode()):
            wait = self._wrong_tokens.record_wrong(address)
            await send_refusal(make_guess_refusal(wait) if wait else _WRONG_TOKEN, send)
            return
        self._wrong_tokens.record_right(address)
        rest = urlencode([pair for pair in query if pair[0] != TOKEN_PARAMETER])
        session = secrets.token_urlsafe(24)
        cookie = f"{_cookie_name(scope)}={session}.{self._sign('cookie', session)}; HttpOnly; SameSite=Strict; Path=/"
        # The path comes from the request, and two slashes at its start would name another host.
        path = "/" + scope.get("raw_path", b"/").decode("ascii", "replace").partition("?")[0].lstrip("/\\")
        headers = [(b"location", (path + (f"?{rest}" if rest else "")).encode()), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _find_session(self, scope: Scope) -> str | None:
        """Return the session in the cookie of a request; ``None`` where the console did not make it."""
        name = _cookie_name(scope)
        for pair in read_headers(scope).get(b"cookie", "").split(";"):
            key, _, value = pair.strip().partition("=")
            session, _, signature = value.rpartition(".")
            if key == name and hmac.compare_digest(signature.encode("latin-1"), self._sign("cookie", session).encode()):
                return session
        return None

    def _sign(self, purpose: str, session: str) -> str:
        return hmac.new(self._key, f"{purpose}\0{session}".encode("utf-8", "surrogateescape"), sha256).hexdigest()

    # -- what passes -------------------------------------------------------------------------------------------------

    async def _forward_reading(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._open_requests >= self._limits.max_http_streams:
            await send_refusal(Refusal(429, "too many pages are open", ((b"retry-after", b"1"),)), send)
            return
        self._open_requests += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open_requests -= 1

    async def _forward_change(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a form on once it is whole and has the token of the console's own forms."""
        headers = read_headers(scope)
        if headers.get(b"content-type", "").partition(";")[0].strip().lower() != _FORM:
            await send_refusal(_NO_FORM, send)
            return
        form_token = scope["state"]["form_token"].encode()

        def find_refusal(body: bytes) -> Refusal | None:
            fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
            given = headers.get(FORM_TOKEN_HEADER) or fields.get(FORM_TOKEN_FIELD, "")
            return None if hmac.compare_digest(given.encode("utf-8", "replace"), form_token) else _NO_FORM_TOKEN

        await self._bodies.forward(scope, receive, send, find_refusal)


def _is_own_site(headers: dict[bytes, str]) -> bool:
    """Return whether a browser says that a page of the console, or the person, sends a request.

    Programs, and old browsers, say nothing. ``Access`` has compared the Origin of those that have one.
    """
    return headers.get(b"sec-fetch-site", "none") in _OWN_SITE


def _cookie_name(scope: Scope) -> str:
    """Return the name of the cookie, with the port: consoles on several ports share the cookies of one host."""
    _, port = scope.get("server") or ("", 0)
    return f"prowess-ui-{port}"


def _read_query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("ascii", "replace"), keep_blank_values=True)


def _add_security_headers(send: Send) -> Send:
    """Return a ``send`` that adds the headers which every answer has, except those that the answer has already."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            present = {name.lower() for name, _ in headers}
            message = {**message, "headers": [*headers, *(pair for pair in SECURITY_HEADERS if pair[0] not in present)]}
        await send(message)

    return send_with_headers
