"""The address that the HTTP server listens on, its further names and origins, and its token; all checked."""

from __future__ import annotations

import os
import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prowess.errors import ResourceError, SkillError, SourceError
from prowess.files.read import OpenFile
from prowess.serving.access import LOOPBACK_HOSTS

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_BIND = "127.0.0.1:8848"
_MIN_TOKEN_LENGTH, _MAX_TOKEN_LENGTH = 16, 4_096
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,253}[a-z0-9_])?\.?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT, _PORT_DIGITS = 65_535, 5


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that is bound to ``host``."""
    if host.lower() in LOOPBACK_HOSTS:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def parse_bind(bind: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT``, ``[HOST]:PORT``, ``HOST``, ``PORT`` or ``:PORT``.

    Raises ``SourceError`` when there is no port, or one that cannot be.
    """
    if bind.isascii() and bind.isdigit():
        bind = f":{bind}"
    host, colon, port = bind.rpartition(":")
    if not colon or bind.endswith("]"):
        host, port = bind, DEFAULT_BIND.rpartition(":")[2]
    if not (port.isascii() and port.isdigit()):
        raise SourceError(f"no port in {bind[:64]!r}: write HOST:PORT")
    if len(port) > _PORT_DIGITS or int(port) > _MAX_PORT:
        raise SourceError(f"port {port[:64]} is out of range: a port is a number from 0 to {_MAX_PORT:,}")
    return host.strip("[]") or "127.0.0.1", int(port)


def parse_host_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the further names of a server in lower case, as a ``Host`` header has them.

    A name is valid with every port. Raises ``SourceError`` for anything else, such as the address of a page.
    """
    return tuple(map(_parse_host_name, names))


def _parse_host_name(name: str) -> str:
    bare = name.lower().strip("[]")
    try:
        return str(ip_address(bare))
    except ValueError:
        pass
    if _HOST_NAME.fullmatch(bare):
        return bare
    host = _split_address(name if "//" in name else f"//{name}")[1].partition(":")[0]
    meant = f": did you mean {host!r}?" if host else ""
    raise SourceError(f"a host must be a name without a port, not {name[:64]!r}{meant}")


def parse_origins(origins: Iterable[str]) -> tuple[str, ...]:
    """Return the origins of further pages as browsers send them: in lower case, without a default port or a path.

    Raises ``SourceError`` for text that no browser sends as an origin.
    """
    return tuple(map(_parse_origin, origins))


def _parse_origin(origin: str) -> str:
    scheme, host, path = _split_address(origin)
    if scheme and host and path in {"", "/"}:
        return f"{scheme}://{host}"
    likely = (
        f"{scheme}://{host}" if scheme and host else f"https://{origin}" if "." in origin and "@" not in origin else ""
    )
    meant = f": did you mean {likely[:64]!r}?" if likely else ""
    raise SourceError(
        f"an origin must be a scheme and a host, such as 'https://app.example', not {origin[:64]!r}{meant}"
    )


def _split_address(address: str) -> tuple[str, str, str]:
    """Return scheme, host (with the port unless it is the default) and path of an address.

    All three are empty for a string that is not an address, and for one that names a user.
    """
    try:
        parts = urlsplit(address.lower())
        port = parts.port
    except ValueError:
        return "", "", ""
    if not parts.hostname or "@" in parts.netloc:
        return "", "", ""
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    is_default = port is None or _DEFAULT_PORTS.get(parts.scheme) == port
    return parts.scheme, name if is_default else f"{name}:{port}", parts.path + parts.query + parts.fragment


def check_token(host: str, token: str | None) -> None:
    """Raise ``SourceError`` when anybody could ask: beyond loopback a token is needed, and it must not be short."""
    if token is None and not is_loopback(host):
        raise SourceError(f"{host} can be reached from other machines: that needs a token", code="token-needed")
    if token is not None and (len(token) < _MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable()):
        raise SourceError(f"a token has at least {_MIN_TOKEN_LENGTH} printable ASCII characters", code="bad-token")


def token_in(file: str | None) -> str | None:
    """Return the token in a file, ``None`` without a file; raises ``SkillError`` when the file cannot be read."""
    if file is None:
        return None
    folder, name = os.path.split(os.path.abspath(os.path.expanduser(file)))
    try:
        with OpenFile(folder, (name,)) as opened:
            return opened.read_all(_MAX_TOKEN_LENGTH).decode("ascii").strip()
    except (ResourceError, UnicodeDecodeError):
        raise SkillError(f"cannot read the token in {file}", code="bad-token") from None
