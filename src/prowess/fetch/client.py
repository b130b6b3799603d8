"""One GET after the other, guarded: every hop checked, every byte counted after decoding, every answer whole."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

from prowess.errors import FetchError
from prowess.fetch.archive.stream import GZIP, BadStreamError, inflated
from prowess.fetch.url_policy import check_scheme, origin_of, shown
from prowess.spec.redaction import hide_secrets, scrub_text

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping

    import httpx2

    from prowess.fetch.connection import Deadline
    from prowess.fetch.url_policy import Allowed, Origin
    from prowess.limits import Limits

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_UNAUTHORIZED = 401
_BUSY = frozenset((408, 425, 429, 500, 502, 503, 504))
AWAY = frozenset(("fetch-failed", "fetch-timeout", "server-busy"))
"""The codes of errors in which the server is away, so that a copy of before may stand in."""
_OWN_HEADERS = {"User-Agent": "prowess", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}


class Answer(NamedTuple):
    """What a server gave: the URL in the end, the status, the headers by lower-case name, the decoded body.

    The URL has no query: one that a redirect brought may be a signature, and this URL is kept and shown.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class Fetcher:
    """Fetches from one site: its origin, and the hosts that were allowed by name. ``headers`` go to its origin only.

    So does the query of ``base``, with every request for a URL that has none of its own. It is added where the request
    is sent and nowhere else, so no URL that is kept, compared or shown holds it.
    """

    def __init__(self, base: str, allowed: Allowed, limits: Limits, headers: Mapping[str, str] | None = None) -> None:
        self._home = origin_of(base)
        self._query = urlsplit(base).query
        self._allowed = allowed
        self._limits = limits
        self._headers = dict(headers or {})
        self._tls: ssl.SSLContext | None = None

    @property
    def has_query(self) -> bool:
        """Whether the site is asked with a query, on which the answers may depend."""
        return bool(self._query)

    def check(self, url: str, *, code: str = "other-origin") -> Origin:
        """Whose URL it is; raises ``FetchError`` unless it may be asked."""
        origin = origin_of(url)
        check_scheme(origin, self._allowed)
        if origin != self._home and not {origin.host, origin.shown} & self._allowed.hosts:
            raise FetchError(f"{shown(url)} belongs to another origin than {self._home.shown}", code=code)
        return origin

    def get(self, url: str, most: int, *, bound: str, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer to a GET; ``most`` decoded bytes (``bound`` is the name of the limit), else ``FetchError``.

        Redirects are followed within what is allowed. An answer that is not 200, 304, 404 or 410 is an error.
        """
        from prowess.fetch.connection import FAILURES, TIMEOUTS, Deadline  # noqa: PLC0415 - loads the HTTP client

        deadline = Deadline(self._limits.fetch_total_seconds)
        origin = self.check(url)
        try:
            for _ in range(self._limits.max_redirects + 1):
                with ExitStack() as stack:
                    response = self._asked(url, origin, deadline, headers or {}, stack)
                    if response.status_code not in _REDIRECTS:
                        return self._answer(url, response, most, bound)
                    url = self._next(url, response)
                    origin = self.check(url, code="redirect-refused")
        except TIMEOUTS:
            raise FetchError(f"{shown(url)} took too long", code="fetch-timeout") from None
        except FAILURES as error:
            raise FetchError(f"{shown(url)} cannot be fetched: {_reason(error)}") from None
        message = f"{shown(url)} is behind more than {self._limits.max_redirects} redirects"
        raise FetchError(message, code="redirect-refused")

    def _asked(
        self, url: str, origin: Origin, deadline: Deadline, headers: Mapping[str, str], stack: ExitStack
    ) -> httpx2.Response:
        import httpx2  # noqa: PLC0415 - only when something is fetched

        from prowess.fetch.connection import transport_to  # noqa: PLC0415

        sent = {**_OWN_HEADERS, **headers, **(self._headers if origin == self._home else {})}
        idle = httpx2.Timeout(self._limits.fetch_idle_seconds)
        request = httpx2.Request(
            "GET", self._with_query(url, origin), headers=sent, extensions={"timeout": idle.as_dict()}
        )
        if (request.url.scheme, request.url.raw_host.decode("ascii").lower()) != (origin.scheme, origin.host):
            raise FetchError(f"{shown(url)} is read in two ways", code="bad-address")
        transport = transport_to(origin, self._allowed, deadline, context=self._context(origin))
        response = stack.enter_context(transport).handle_request(request)
        stack.callback(response.close)
        return response

    def _with_query(self, url: str, origin: Origin) -> str:
        bare = url.partition("#")[0]
        return f"{bare}?{self._query}" if self._query and origin == self._home and "?" not in bare else url

    def _context(self, origin: Origin) -> ssl.SSLContext | None:
        """Made once: reading the authorities takes longer than a request."""
        from prowess.fetch.connection import tls_context  # noqa: PLC0415 - loads the HTTP client

        if origin.scheme == "https" and self._tls is None:
            self._tls = tls_context()
        return self._tls if origin.scheme == "https" else None

    def _next(self, url: str, response: httpx2.Response) -> str:
        target = response.headers.get("location", "")
        try:
            following = urljoin(url, target) if target else ""
            is_web = urlsplit(following).scheme in {"http", "https"}
        except ValueError:
            is_web = False
        if not is_web:
            raise FetchError(f"{shown(url)} redirects to no web address", code="redirect-refused")
        return following

    def _answer(self, url: str, response: httpx2.Response, most: int, bound: str) -> Answer:
        status = response.status_code
        headers = {name.lower(): value for name, value in response.headers.items()}
        if status in {304, 404, 410}:
            return Answer(hide_secrets(url), status, headers, b"")
        if status != 200:  # noqa: PLR2004 - OK
            code = "server-busy" if status in _BUSY else "login-needed" if status == _UNAUTHORIZED else "http-status"
            raise FetchError(f"{shown(url)} is answered with status {status}", code=code)
        return Answer(hide_secrets(url), status, headers, self._body(url, response, most, bound))

    def _body(self, url: str, response: httpx2.Response, most: int, bound: str) -> bytes:
        length = response.headers.get("content-length", "")
        if not length and "chunked" not in response.headers.get("transfer-encoding", "").lower():
            raise FetchError(f"{shown(url)} is answered without saying where the answer ends")
        if length.isdigit() and len(length) < 20 and int(length) > most:  # noqa: PLR2004 - what a number may have
            raise _too_large(url, most, bound)
        body = bytearray()
        try:
            for piece in _decoded(url, response):
                body += piece
                if len(body) > most:
                    raise _too_large(url, most, bound)
        except BadStreamError as error:
            raise FetchError(f"{shown(url)} is answered with a compressed stream that {error}") from None
        return bytes(body)


def _decoded(url: str, response: httpx2.Response) -> Iterator[bytes]:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in {"", "identity"}:
        return response.iter_raw()
    if encoding in {"gzip", "x-gzip"}:
        return inflated(response.iter_raw(), GZIP)
    raise FetchError(f"{shown(url)} is answered in an encoding that was not asked for")


def _too_large(url: str, most: int, bound: str) -> FetchError:
    return FetchError(f"{shown(url)} has more than Limits.{bound} ({most}) bytes", code="download-too-large")


def _reason(error: Exception) -> str:
    """What went wrong, in one line; what a server wrote is not repeated."""
    text = scrub_text(str(error)) or type(error).__name__
    return ascii(text[:200])[1:-1]
