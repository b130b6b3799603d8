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

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS = {"https": 443, "http": 80}
_UNICAST = ipaddress.IPv6Network("2000::/3")
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")  # how a public IPv4 address looks from a network without IPv4
_LONGEST = 4096


class Allowed(NamedTuple):
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
    def shown(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS.get(self.scheme) else f"{host}:{self.port}"


def origin_of(url: str) -> Origin:
    """Whose URL it is; raises ``FetchError`` for what is no plain web address."""
    parts = _split(url)
    host = (parts.hostname or "").lower()
    if parts.scheme not in _PORTS or not host:
        raise FetchError(f"{shown(url)} is no web address", code="bad-address")
    if "@" in parts.netloc:
        raise FetchError(f"{shown(url)} holds a name or a password", code="bad-address")
    return Origin(parts.scheme, host, _port(parts, url))


def _split(url: str) -> SplitResult:
    odd = len(url) > _LONGEST or not url.isascii() or not url.isprintable() or " " in url or "\\" in url
    try:
        parts = urlsplit("" if odd else url)
    except ValueError:
        odd = True
    if odd:
        raise FetchError(f"{shown(url)} is no web address", code="bad-address")
    return parts


def _port(parts: SplitResult, url: str) -> int:
    try:
        return parts.port or _PORTS[parts.scheme]
    except ValueError:
        raise FetchError(f"{shown(url)} has no usable port", code="bad-address") from None


def shown(url: str) -> str:
    """A URL as messages show it: short, without names, passwords, queries and odd characters."""
    return ascii(hide_secrets(url).partition("#")[0][:200])


def checked_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers that a caller gave; raises ``SourceError`` for one that cannot be sent, without repeating its value.

    The HTTP client refuses such a header too, and quotes it: a token that was read with its line break would be shown.
    """
    for name, value in (headers or {}).items():
        if not name.isascii() or not value.isascii() or not (name + value).isprintable():
            raise SourceError(f"the header {name!a} holds a line break, or another character that no header may hold")
    return dict(headers or {})


def check_scheme(origin: Origin, allowed: Allowed) -> None:
    """Raise ``FetchError`` for plain http that was not allowed."""
    if origin.scheme != "https" and not allowed.http:
        raise FetchError(f"{origin.shown} is asked over plain http", code="plain-http")


def resolve(origin: Origin, allowed: Allowed) -> list[str]:
    """The numeric addresses of a host, every one checked; raises ``FetchError``.

    All must be public: a name with one private address among others is refused as a whole.
    """
    if not allowed.private and _is_local_name(origin.host):
        raise _refused(origin.shown, "names this machine")
    try:
        found = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise FetchError(f"{origin.shown} is not known to the name service", code="fetch-failed") from None
    addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
    for address in addresses:
        check_address(address, allowed, origin.shown)
    return addresses


def check_address(address: str, allowed: Allowed, host: str) -> None:
    """Raise ``FetchError`` unless a numeric address may be asked."""
    if not allowed.private and not is_public(address):
        raise _refused(host, f"leads to {address}, which is not a public address")


def is_public(address: str) -> bool:
    """Whether a numeric address belongs to a machine on the internet, whatever it is wrapped in."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(_is_global(one) for one in _unwrapped(found))


def _unwrapped(address: Address) -> list[Address]:
    """The address, or the addresses that it carries inside."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in _TRANSLATED:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    inner = [address.sixtofour, *(address.teredo or ())]
    return [address, *(one for one in inner if one is not None)]


def _is_global(address: Address) -> bool:
    if address.version == 6 and address not in _UNICAST:  # noqa: PLR2004 - the version of the protocol
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


def _refused(host: str, why: str) -> FetchError:
    return FetchError(f"{host} is refused: it {why}", code="address-refused")
