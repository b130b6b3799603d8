"""A guarded HTTP client: each redirect is checked, decoded bytes are counted, answers are whole."""

from __future__ import annotations

from contextlib import ExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

from prowess.errors import FetchError
from prowess.fetch.archive.members import GZIP_WBITS, BadStreamError, inflate
from prowess.fetch.url_policy import check_scheme, display_url, parse_origin
from prowess.policy.rules import is_within
from prowess.text.redaction import hide_secrets, scrub_text

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping

    import httpx2

    from prowess.fetch.transport import Deadline
    from prowess.fetch.url_policy import Origin, UrlPolicy
    from prowess.limits import Limits

_REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))
_GET_STATUSES = frozenset((200, 304, 404, 410))
_STATUS_CODES = {401: "login-needed", **dict.fromkeys((408, 425, 429, 500, 502, 503, 504), "server-busy")}
"""The codes of errors for some HTTP statuses; every other one is ``http-status``."""
UNREACHABLE_CODES = frozenset(("fetch-failed", "fetch-timeout", "server-busy"))
"""The codes of errors that say the server cannot be reached now, so that an old copy may be used."""
# Without compression, and each request on a connection of its own, since each host is checked when it is connected.
_DEFAULT_HEADERS = {"User-Agent": "prowess", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}


class HttpResponse(NamedTuple):
    """What a server sent: the URL after redirects, the status, the headers by lower-case name, the decoded body.

    The URL has no query. The query of a redirect may be a signature, and this URL is kept and shown.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class Fetcher:
    """Fetches from one site: from the origin of ``base``, and from hosts that the policy allows by name.

    ``headers`` and the query of ``base`` may hold secrets, so they go to that origin only. The query is added to every
    request for a URL without a query of its own. It is added where the request is sent and nowhere else, so no URL that
    is kept, compared or shown holds it.
    """

    def __init__(self, base: str, allowed: UrlPolicy, limits: Limits, headers: Mapping[str, str] | None = None) -> None:
        self._base = base.partition("?")[0]
        self._base_origin = parse_origin(base)
        self._query = urlsplit(base).query
        self._allowed = allowed
        self._limits = limits
        self._headers = dict(headers or {})
        self._tls: ssl.SSLContext | None = None

    @property
    def has_query(self) -> bool:
        """True when requests carry the query of the site's address, on which the answers may depend."""
        return bool(self._query)

    def check_url(self, url: str, *, code: str = "other-origin", any_host: bool = False) -> Origin:
        """Return the origin of a URL; raises ``FetchError`` with ``code`` when the URL may not be asked.

        Raises ``PolicyError`` for one that leads away from the site to what a policy file refuses. With ``any_host``
        every host will do, since the caller knows the digest of what it wants.
        """
        origin = parse_origin(url)
        check_scheme(origin, self._allowed)
        if any_host:
            return origin
        if origin != self._base_origin and not {origin.host, origin.display} & self._allowed.hosts:
            raise FetchError(
                f"{display_url(url)} belongs to another origin than {self._base_origin.display}", code=code
            )
        if not is_within(url.partition("?")[0], self._base):
            self._allowed.check(hide_secrets(url).partition("?")[0])
        return origin

    def get(
        self, url: str, max_bytes: int, *, limit_name: str, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Send a GET request and return the answer, after following redirects to allowed addresses.

        Raises ``FetchError`` when the body has more than ``max_bytes`` bytes after decoding (``limit_name`` is the
        field of ``Limits`` for the message), when the server fails or takes too long, when an address is not allowed,
        and for every status but 200, 304, 404 and 410.
        """
        return self.request("GET", url, max_bytes, limit_name=limit_name, headers=headers)

    def request(
        self,
        method: str,
        url: str,
        max_bytes: int,
        *,
        limit_name: str,
        headers: Mapping[str, str] | None = None,
        origin_headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        statuses: frozenset[int] = _GET_STATUSES,
        any_host: bool = False,
    ) -> HttpResponse:
        """Send a request and return the answer, as ``get`` does; raises ``FetchError`` for other ``statuses``.

        ``origin_headers`` may hold secrets: they go to the origin of the site only. Redirects of GET and HEAD are
        followed, with ``any_host`` to every address that the policy allows; those of other methods are refused.
        """
        from prowess.fetch.transport import FAILURES, TIMEOUTS, Deadline

        # One deadline for all hops: a server that redirects slowly gains no time.
        deadline = Deadline(self._limits.fetch_total_seconds)
        origin = self.check_url(url)
        try:
            for _ in range(self._limits.max_redirects + 1):
                own = {**(origin_headers or {}), **self._headers} if origin == self._base_origin else {}
                sent = {**_DEFAULT_HEADERS, **(headers or {}), **own}
                with ExitStack() as stack:
                    response = self._send_request(method, url, origin, deadline, sent, body, stack)
                    if response.status_code not in _REDIRECT_STATUSES:
                        return self._read_response(url, response, max_bytes, limit_name, statuses, method)
                    url = self._redirect_target(url, response, method)
                    origin = self.check_url(url, code="redirect-refused", any_host=any_host)
        except TIMEOUTS:
            raise FetchError(f"{display_url(url)} took too long", code="fetch-timeout") from None
        except FAILURES as error:
            raise FetchError(f"{display_url(url)} cannot be fetched: {_describe_error(error)}") from None
        raise FetchError(
            f"{display_url(url)} is behind more than {self._limits.max_redirects} redirects", code="redirect-refused"
        )

    def _send_request(  # noqa: PLR0917 - one request, and where it ends
        self,
        method: str,
        url: str,
        origin: Origin,
        deadline: Deadline,
        headers: Mapping[str, str],
        body: bytes,
        stack: ExitStack,
    ) -> httpx2.Response:
        import httpx2

        from prowess.fetch.transport import make_transport

        extensions = {"timeout": httpx2.Timeout(self._limits.fetch_idle_seconds).as_dict()}
        address = self._with_query(url, origin)
        request = httpx2.Request(method, address, headers=headers, content=body, extensions=extensions)
        # Two readers of one URL may see two hosts. The client must connect to the host that was checked.
        if (request.url.scheme, request.url.raw_host.decode("ascii").lower()) != (origin.scheme, origin.host):
            raise FetchError(f"{display_url(url)} is read in two ways", code="bad-address")
        transport = make_transport(origin, self._allowed, deadline, context=self._tls_context(origin))
        response = stack.enter_context(transport).handle_request(request)
        stack.callback(response.close)  # before the transport: the stack closes in reverse
        return response

    def _with_query(self, url: str, origin: Origin) -> str:
        bare = url.partition("#")[0]
        return f"{bare}?{self._query}" if self._query and origin == self._base_origin and "?" not in bare else url

    def _tls_context(self, origin: Origin) -> ssl.SSLContext | None:
        """Return the settings of TLS for https. Made once: reading the authorities takes longer than a request."""
        from prowess.fetch.transport import make_tls_context

        if origin.scheme == "https" and self._tls is None:
            self._tls = make_tls_context()
        return self._tls if origin.scheme == "https" else None

    def _redirect_target(self, url: str, response: httpx2.Response, method: str) -> str:
        if method not in {"GET", "HEAD"}:
            raise FetchError(f"{display_url(url)} redirects what is sent to it elsewhere", code="redirect-refused")
        target = response.headers.get("location", "")
        try:
            new_url = urljoin(url, target) if target else ""
            is_web = urlsplit(new_url).scheme in {"http", "https"}
        except ValueError:
            is_web = False
        if not is_web:
            raise FetchError(f"{display_url(url)} redirects to no web address", code="redirect-refused")
        return new_url

    def _read_response(  # noqa: PLR0917 - the answer, and what was asked
        self,
        url: str,
        response: httpx2.Response,
        max_bytes: int,
        limit_name: str,
        statuses: frozenset[int],
        method: str,
    ) -> HttpResponse:
        status = response.status_code
        headers = {name.lower(): value for name, value in response.headers.items()}
        if status not in statuses:
            code = _STATUS_CODES.get(status, "http-status")
            raise FetchError(f"{display_url(url)} is answered with status {status}", code=code)
        has_body = status < HTTPStatus.MULTIPLE_CHOICES and method != "HEAD"
        body = self._read_body(url, response, max_bytes, limit_name) if has_body else b""
        return HttpResponse(hide_secrets(url), status, headers, body)

    def _read_body(self, url: str, response: httpx2.Response, max_bytes: int, limit_name: str) -> bytes:
        length = response.headers.get("content-length", "")
        if length.isdigit() and len(length) < 20 and int(length) > max_bytes:  # noqa: PLR2004 - the digits of a 64-bit number
            raise _make_size_error(url, max_bytes, limit_name)
        body = bytearray()
        try:
            for piece in _decode_body(url, response):
                body += piece
                if len(body) > max_bytes:
                    raise _make_size_error(url, max_bytes, limit_name)
        except BadStreamError as error:
            raise FetchError(f"{display_url(url)} is answered with a compressed stream that {error}") from None
        return bytes(body)


def _decode_body(url: str, response: httpx2.Response) -> Iterator[bytes]:
    """Return the decoded pieces of a body. They are inflated here, because the client inflates without a bound."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in {"", "identity"}:
        return response.iter_raw()
    if encoding in {"gzip", "x-gzip"}:
        return inflate(response.iter_raw(), GZIP_WBITS)
    raise FetchError(f"{display_url(url)} is answered in an encoding that was not asked for")


def _make_size_error(url: str, max_bytes: int, limit_name: str) -> FetchError:
    return FetchError(
        f"{display_url(url)} has more than Limits.{limit_name} ({max_bytes}) bytes", code="download-too-large"
    )


def _describe_error(error: Exception) -> str:
    """Return what went wrong as one short line of ASCII, without secrets and control characters."""
    text = scrub_text(str(error)) or type(error).__name__
    return ascii(text[:200])[1:-1]
