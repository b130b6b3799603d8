"""Connections for the HTTP client: to checked addresses only, never past the deadline, by a proxy where one is set.

A host is resolved once, every address of it is checked, the connection goes to one of those, and the peer of the
connected socket is checked again: a name that changes its answer in between gains nothing. Through a proxy, the proxy
resolves and connects; the name is then checked as far as it can be resolved here, and the proxy is trusted with the
rest, as whoever configured it does.
"""

from __future__ import annotations

import time
from contextlib import suppress
from socket import SHUT_RDWR
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from prowess.errors import FetchError
from prowess.fetch.url_policy import Origin, check_address, is_loopback, resolve_host
from prowess.thread_work import call_on_cancel, raise_if_cancelled

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator

    from prowess.fetch.url_policy import UrlPolicy

FAILURES = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
    OSError,
)
"""What the client raises when a server or the way to it fails."""
TIMEOUTS = (httpx2.TimeoutException, httpcore2.TimeoutException, TimeoutError)


class Deadline:
    """The moment at which a fetch must be over."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def seconds_left(self, most: float | None = None) -> float:
        """Seconds that one step may take; raises when there are none."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the time for the whole fetch is over")
        return left if most is None else min(left, most)


class _DeadlineStream(httpcore2.NetworkStream):
    """A connection each of whose steps ends with the deadline."""

    def __init__(self, inner: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with call_on_cancel(self._hang_up):
            return self._inner.read(max_bytes, self._deadline.seconds_left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with call_on_cancel(self._hang_up):
            self._inner.write(buffer, self._deadline.seconds_left(timeout))

    def _hang_up(self) -> None:
        """End whatever waits for the server, from another thread: closing alone would not wake it."""
        with suppress(OSError):  # the server may have been faster
            self._inner.get_extra_info("socket").shutdown(SHUT_RDWR)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        with call_on_cancel(self._hang_up):
            inner = self._inner.start_tls(ssl_context, server_hostname, self._deadline.seconds_left(timeout))
        return _DeadlineStream(inner, self._deadline)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - the client's own signature
        return self._inner.get_extra_info(info)


class GuardedBackend(httpcore2.NetworkBackend):
    """Connects to checked addresses only; ``allowed=None`` is for the way to a proxy, which the user configured."""

    def __init__(self, deadline: Deadline, allowed: UrlPolicy | None, scheme: str) -> None:
        self._deadline = deadline
        self._allowed = allowed
        self._scheme = scheme
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """A connection to the first address of the host that answers."""
        addresses = [host] if self._allowed is None else resolve_host(Origin(self._scheme, host, port), self._allowed)
        for address in addresses[:-1]:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return self._connect_address(address, host, port, timeout, local_address, socket_options)
        return self._connect_address(addresses[-1], host, port, timeout, local_address, socket_options)

    def _connect_address(  # noqa: PLR0917 - the client's own signature and one more
        self,
        address: str,
        host: str,
        port: int,
        timeout: float | None,
        local_address: str | None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None,
    ) -> httpcore2.NetworkStream:
        raise_if_cancelled()
        left = self._deadline.seconds_left(timeout)
        stream = self._inner.connect_tcp(address, port, left, local_address, socket_options)
        if self._allowed is not None:
            try:
                check_address(str(stream.get_extra_info("server_addr")[0]), self._allowed, host)
            except BaseException:
                stream.close()
                raise
        return _DeadlineStream(stream, self._deadline)


class _ResponseBody(httpx2.SyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class GuardedTransport(httpx2.BaseTransport):
    """The way to one origin, by a guarded connection or by a proxy."""

    def __init__(self, pool: httpcore2.ConnectionPool) -> None:
        self._pool = pool

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        asked = httpcore2.Request(request.method, url, headers=request.headers.raw, extensions=request.extensions)
        answer = self._pool.handle_request(asked)
        return httpx2.Response(answer.status, headers=answer.headers, stream=_ResponseBody(answer))

    def close(self) -> None:
        self._pool.close()


def make_tls_context() -> ssl.SSLContext:
    """What servers are verified with: the system's authorities, or those of SSL_CERT_FILE or SSL_CERT_DIR."""
    return httpx2.create_ssl_context()


def make_transport(
    origin: Origin, allowed: UrlPolicy, deadline: Deadline, *, context: ssl.SSLContext | None = None
) -> GuardedTransport:
    """The way to ``origin``; raises ``FetchError`` when it may not be taken."""
    proxy = _find_proxy(origin)
    if proxy is None:
        guard = GuardedBackend(deadline, allowed, origin.scheme)
        return GuardedTransport(httpcore2.ConnectionPool(ssl_context=context, network_backend=guard))
    _check_beyond_proxy(origin, allowed)
    parts = urlsplit(proxy)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise FetchError(f"the proxy for {origin.display} is neither http nor https", code="bad-address")
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    guard = GuardedBackend(deadline, None, parts.scheme)
    return GuardedTransport(
        httpcore2.HTTPProxy(place, proxy_auth=auth, ssl_context=context, network_backend=guard),
    )


def _find_proxy(origin: Origin) -> str | None:
    """The proxy that the environment or the system sets for an origin; never one for this machine itself."""
    if is_loopback(origin.host) or proxy_bypass(origin.host):
        return None
    found = getproxies()
    proxy = found.get(origin.scheme) or found.get("all")
    return proxy if proxy is None or "://" in proxy else f"http://{proxy}"


def _check_beyond_proxy(origin: Origin, allowed: UrlPolicy) -> None:
    """A name that only the proxy can resolve passes; one that is known here must be allowed."""
    try:
        resolve_host(origin, allowed)
    except FetchError as error:
        if error.code == "address-refused":
            raise
