"""Which addresses may be asked: https unless plain http is allowed, public machines unless private ones are allowed."""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, urlsplit

from prowess.errors import FetchError, SourceError
from prowess.spec.redaction import hide_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_DEFAULT_PORTS = {"https": 443, "http": 80}
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # how a public IPv4 address looks from a network without IPv4
_MAX_URL_LENGTH = 4096


class UrlPolicy(NamedTuple):
    """What a caller allowed by name."""

    private: bool = False
    http: bool = False
    hosts: frozenset[str] = frozenset()
    """Other hosts that redirects and entries may lead to; ``host`` or ``host:port``."""


class Origin(NamedTuple):
    """Scheme, host and port: what one server is."""

    scheme: str
    host: str
    port: int

    @property
    def display(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS.get(self.scheme) else f"{host}:{self.port}"


def parse_origin(url: str) -> Origin:
    """Whose URL it is; raises ``FetchError`` for what is no plain web address."""
    parts = _split_url(url)
    host = (parts.hostname or "").lower()
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise FetchError(f"{display_url(url)} is no web address", code="bad-address")
    if "@" in parts.netloc:
        raise FetchError(f"{display_url(url)} holds a name or a password", code="bad-address")
    return Origin(parts.scheme, host, _parse_port(parts, url))


def _split_url(url: str) -> SplitResult:
    odd = len(url) > _MAX_URL_LENGTH or not url.isascii() or not url.isprintable() or " " in url or "\\" in url
    try:
        parts = urlsplit("" if odd else url)
    except ValueError:
        odd = True
    if odd:
        raise FetchError(f"{display_url(url)} is no web address", code="bad-address")
    return parts


def _parse_port(parts: SplitResult, url: str) -> int:
    try:
        return parts.port or _DEFAULT_PORTS[parts.scheme]
    except ValueError:
        raise FetchError(f"{display_url(url)} has no usable port", code="bad-address") from None


def display_url(url: str) -> str:
    """A URL as messages show it: short, without names, passwords, queries and odd characters."""
    return ascii(hide_secrets(url).partition("#")[0][:200])


def check_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers that a caller gave; raises ``SourceError`` for one that cannot be sent, without repeating its value.

    The HTTP client refuses such a header too, and quotes it: a token that was read with its line break would be shown.
    """
    for name, value in (headers or {}).items():
        if not name.isascii() or not value.isascii() or not (name + value).isprintable():
            raise SourceError(f"the header {name!a} holds a line break, or another character that no header may hold")
    return dict(headers or {})


def check_scheme(origin: Origin, allowed: UrlPolicy) -> None:
    """Raise ``FetchError`` for plain http that was not allowed."""
    if origin.scheme != "https" and not allowed.http:
        raise FetchError(f"{origin.display} is asked over plain http", code="plain-http")


def resolve_host(origin: Origin, allowed: UrlPolicy) -> list[str]:
    """The numeric addresses of a host, every one checked; raises ``FetchError``.

    All must be public: a name with one private address among others is refused as a whole.
    """
    if not allowed.private and _is_local_name(origin.host):
        raise _make_refusal(origin.display, "names this machine")
    try:
        found = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise FetchError(f"{origin.display} is not known to the name service", code="fetch-failed") from None
    addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
    for address in addresses:
        check_address(address, allowed, origin.display)
    return addresses


def check_address(address: str, allowed: UrlPolicy, host: str) -> None:
    """Raise ``FetchError`` unless a numeric address may be asked."""
    if not allowed.private and not is_public(address):
        raise _make_refusal(host, f"leads to {address}, which is not a public address")


def is_public(address: str) -> bool:
    """Whether a numeric address belongs to a machine on the internet, whatever it is wrapped in."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(_is_global(one) for one in _unwrap_address(found))


def _unwrap_address(address: IpAddress) -> list[IpAddress]:
    """The address, or the addresses that it carries inside."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    inner = [address.sixtofour, *(address.teredo or ())]
    return [address, *(one for one in inner if one is not None)]


def _is_global(address: IpAddress) -> bool:
    if address.version == 6 and address not in _GLOBAL_UNICAST:  # noqa: PLR2004 - the version of the protocol
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def is_loopback(host: str) -> bool:
    """Whether a host as written is this very machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return _is_local_name(host)


def _is_local_name(host: str) -> bool:
    return host.rstrip(".").rpartition(".")[2] == "localhost"


def _make_refusal(host: str, why: str) -> FetchError:
    return FetchError(f"{host} is refused: it {why}", code="address-refused")
