"""Which addresses may be asked: https only unless plain http is allowed, public only unless private ones are allowed.

A URL in an index or a redirect is chosen by somebody else. Without this rule it could reach services inside the user's
network.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, urlsplit

from prowess.errors import FetchError, SourceError
from prowess.policy.files import current_policy
from prowess.text.redaction import hide_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_DEFAULT_PORTS = {"https": 443, "http": 80}
# All public IPv6 addresses are in here today; the others are reserved or for special uses.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # how a public IPv4 address looks from a network without IPv4
_MAX_URL_LENGTH = 4096


class UrlPolicy(NamedTuple):
    """What the caller allowed: private addresses, plain http, and other hosts."""

    private: bool = False
    http: bool = False
    hosts: frozenset[str] = frozenset()
    """Other hosts that redirects and entries may lead to; ``host`` or ``host:port``."""
    check: Callable[[str], object] = str
    """Raises ``PolicyError`` for an address, beside those of the site itself, that a policy file refuses."""


class Origin(NamedTuple):
    """Scheme, host and port, which together name one server."""

    scheme: str
    host: str
    port: int

    @property
    def display(self) -> str:
        """The host as messages show it, with the port where it is not the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS.get(self.scheme) else f"{host}:{self.port}"


def parse_origin(url: str) -> Origin:
    """Return the origin of a URL; raises ``FetchError`` for anything but a plain web address."""
    parts = _split_url(url)
    host = (parts.hostname or "").lower()
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise FetchError(f"{display_url(url)} is not a web address", code="bad-address")
    if "@" in parts.netloc:  # it would be kept and shown with the address
        raise FetchError(f"{display_url(url)} holds a name or a password", code="bad-address")
    return Origin(parts.scheme, host, _parse_port(parts, url))


def _split_url(url: str) -> SplitResult:
    # Readers of URLs disagree on spaces, backslashes and characters beyond ASCII: none may be in one.
    is_odd = len(url) > _MAX_URL_LENGTH or not url.isascii() or not url.isprintable() or " " in url or "\\" in url
    try:
        parts = urlsplit("" if is_odd else url)
    except ValueError:
        is_odd = True
    if is_odd:
        raise FetchError(f"{display_url(url)} is not a web address", code="bad-address")
    return parts


def _parse_port(parts: SplitResult, url: str) -> int:
    try:
        return parts.port or _DEFAULT_PORTS[parts.scheme]
    except ValueError:
        raise FetchError(f"{display_url(url)} has no usable port", code="bad-address") from None


def display_url(url: str) -> str:
    """Return a URL as messages show it: short, without user names, passwords, queries and control characters."""
    return ascii(hide_secrets(url).partition("#")[0][:200])


def check_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return a copy of the caller's headers; raises ``SourceError`` for one that cannot be sent.

    The HTTP client refuses such a header too, but quotes it. A token that was read from a file with its line break
    would then be shown, so this error does not repeat the value.
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
    """Return the numeric addresses of a host; raises ``FetchError`` when one is refused, or none is known.

    All must be public. A name with one private address among others is refused as a whole, because the caller of the
    name does not choose which address is used.
    """
    if _is_local_name(origin.host) and not may_be_private(origin, allowed):
        raise _make_refusal(origin.display, "names this machine")
    try:
        answers = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise FetchError(f"{origin.display} is not known to the name service", code="fetch-failed") from None
    # In the order of the name service, which prefers addresses that work here.
    addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in answers))
    for address in addresses:
        check_address(address, allowed, origin)
    return addresses


def may_be_private(origin: Origin, allowed: UrlPolicy) -> bool:
    """Return whether a server may have an address that is not public: by the caller's word, or by the policy's."""
    return allowed.private or current_policy().allows_private_host(origin.display)


def check_address(address: str, allowed: UrlPolicy, origin: Origin) -> None:
    """Raise ``FetchError`` unless a numeric address may be asked."""
    if not is_public(address) and not may_be_private(origin, allowed):
        raise _make_refusal(origin.display, f"leads to {address}, which is not a public address")


def is_public(address: str) -> bool:
    """Return whether a numeric address, and each address that is embedded in it, is public on the internet."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(_is_global(inner) for inner in _unwrap_address(parsed))


def _unwrap_address(address: IpAddress) -> list[IpAddress]:
    """Return the addresses that decide where packets go: the address itself, or those embedded in it.

    An IPv6 address may carry an IPv4 address (mapped, NAT64, 6to4, Teredo). A private one could hide in a public one.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    embedded = (address.sixtofour, *(address.teredo or ()))
    return [address, *(inner for inner in embedded if inner is not None)]


def _is_global(address: IpAddress) -> bool:
    is_in_range = isinstance(address, ipaddress.IPv4Address) or address in _GLOBAL_UNICAST
    return is_in_range and address.is_global and not address.is_multicast and not address.is_reserved


def is_loopback(host: str) -> bool:
    """Return whether the text of a host names this machine, as ``localhost`` and ``127.0.0.1`` do."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return _is_local_name(host)


def _is_local_name(host: str) -> bool:
    return host.rstrip(".").rpartition(".")[2] == "localhost"


def _make_refusal(host: str, why: str) -> FetchError:
    return FetchError(f"{host} is refused: it {why}", code="address-refused")
