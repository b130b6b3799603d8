"""The transport of the HTTP client: checked addresses only, a deadline, and a proxy where one is set.

A host is resolved once, and every address of it is checked. The connection goes to one of these addresses, and the peer
of the connected socket is checked again, so a name that changes its address in between gains nothing. A proxy resolves
names and connects by itself. There the name is checked as far as it can be resolved here, and the proxy is trusted with
the rest, because the user configured it.
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
"""The exceptions of the client for a failing server or network."""
TIMEOUTS = (httpx2.TimeoutException, httpcore2.TimeoutException, TimeoutError)


class Deadline:
    """The moment at which a fetch must be over."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def seconds_left(self, limit: float | None = None) -> float:
        """Return how many seconds one step may take, at most ``limit``; raises ``ReadTimeout`` when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the time for the whole fetch is over")
        return left if limit is None else min(left, limit)


class _DeadlineStream(httpcore2.NetworkStream):
    """A connection whose steps last no longer than the deadline allows.

    The client's own timeout counts from the last byte, so a server that sends a byte now and then would never meet it.
    """

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
        """Wake the thread that waits for the server; closing the socket alone would not wake it."""
        with suppress(OSError):  # the server may have closed the connection first
            self._inner.get_extra_info("socket").shutdown(SHUT_RDWR)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        with call_on_cancel(self._hang_up):
            inner = self._inner.start_tls(ssl_context, server_hostname, self._deadline.seconds_left(timeout))
        return _DeadlineStream(inner, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class GuardedBackend(httpcore2.NetworkBackend):
    """Connects to checked addresses only; ``allowed=None`` is for a proxy, which the user configured."""

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
        """Return a connection to the first address of the host that answers."""
        origin = Origin(self._scheme, host, port)
        addresses = [host] if self._allowed is None else resolve_host(origin, self._allowed)
        # The next address is tried when one does not answer; the error of the last one is raised.
        for address in addresses[:-1]:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return self._connect_address(address, origin, timeout, local_address, socket_options)
        return self._connect_address(addresses[-1], origin, timeout, local_address, socket_options)

    def _connect_address(
        self,
        address: str,
        origin: Origin,
        timeout: float | None,
        local_address: str | None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None,
    ) -> httpcore2.NetworkStream:
        raise_if_cancelled()  # connecting cannot be interrupted, so this is the last moment
        left = self._deadline.seconds_left(timeout)
        stream = self._inner.connect_tcp(address, origin.port, left, local_address, socket_options)
        if self._allowed is not None:
            # Checked once more: the address that was resolved must be the one that answers.
            try:
                check_address(str(stream.get_extra_info("server_addr")[0]), self._allowed, origin)
            except BaseException:
                stream.close()
                raise
        return _DeadlineStream(stream, self._deadline)


class _ResponseBody(httpx2.SyncByteStream):
    """The body of an answer, in pieces as they arrive."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class GuardedTransport(httpx2.BaseTransport):
    """The transport to one origin, by a guarded connection or by a proxy."""

    def __init__(self, pool: httpcore2.ConnectionPool) -> None:
        self._pool = pool

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request, and return the answer with a body that is read on demand."""
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        inner = httpcore2.Request(
            request.method, url, headers=request.headers.raw, content=request.stream, extensions=request.extensions
        )
        answer = self._pool.handle_request(inner)
        return httpx2.Response(answer.status, headers=answer.headers, stream=_ResponseBody(answer))

    def close(self) -> None:
        self._pool.close()


def make_tls_context() -> ssl.SSLContext:
    """Return settings of TLS that verify servers by the system's authorities, or by SSL_CERT_FILE or SSL_CERT_DIR."""
    return httpx2.create_ssl_context()


def make_transport(
    origin: Origin, allowed: UrlPolicy, deadline: Deadline, *, context: ssl.SSLContext | None = None
) -> GuardedTransport:
    """Return a transport to ``origin``; raises ``FetchError`` when its address or its proxy is refused."""
    proxy = _find_proxy(origin)
    if proxy is None:
        guard = GuardedBackend(deadline, allowed, origin.scheme)
        return GuardedTransport(httpcore2.ConnectionPool(ssl_context=context, network_backend=guard))
    try:
        resolve_host(origin, allowed)
    except FetchError as error:
        if error.code == "address-refused":  # a host that only the proxy knows passes
            raise
    parts = urlsplit(proxy)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise FetchError(f"the proxy for {origin.display} is neither http nor https", code="bad-address")
    proxy_url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    guard = GuardedBackend(deadline, None, parts.scheme)
    return GuardedTransport(
        httpcore2.HTTPProxy(proxy_url, proxy_auth=auth, ssl_context=context, network_backend=guard),
    )


def _find_proxy(origin: Origin) -> str | None:
    """Return the proxy that the environment or the system sets for an origin; ``None`` for this machine itself."""
    # A proxy would reach its own machine under such a name.
    if is_loopback(origin.host) or proxy_bypass(origin.host):
        return None
    proxies = getproxies()
    proxy = proxies.get(origin.scheme) or proxies.get("all")
    return proxy if proxy is None or "://" in proxy else f"http://{proxy}"
