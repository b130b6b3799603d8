"""Where a server on HTTP listens, and who could reach it there."""

from __future__ import annotations

import os
import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prowess.errors import ResourceError, SkillError, SourceError
from prowess.mcp.http.access import LOOPBACK_HOSTS

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_BIND = "127.0.0.1:8848"
_MIN_TOKEN_LENGTH, _MAX_TOKEN_LENGTH = 16, 4_096
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,253}[a-z0-9_])?\.?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT, _PORT_DIGITS = 65_535, 5


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what is bound to ``host``."""
    if host.lower() in LOOPBACK_HOSTS:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def parse_bind(bind: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``, ``[HOST]:PORT``, ``HOST``, ``PORT`` or ``:PORT``."""
    if bind.isascii() and bind.isdigit():
        bind = f":{bind}"
    host, found, port = bind.rpartition(":")
    if not found or bind.endswith("]"):
        host, port = bind, DEFAULT_BIND.rpartition(":")[2]
    if not (port.isascii() and port.isdigit()):
        raise SourceError(f"no port in {bind[:64]!r}: write HOST:PORT")
    if len(port) > _PORT_DIGITS or int(port) > _MAX_PORT:
        raise SourceError(f"port {port[:64]} is out of range: a port is a number from 0 to {_MAX_PORT:,}")
    return host.strip("[]") or "127.0.0.1", int(port)


def parse_host_names(names: Iterable[str]) -> tuple[str, ...]:
    """The further names of a server as a ``Host`` has them, in lower case.

    A name goes with every port. Raises ``SourceError`` for what no request could name: a port, an address of a page.
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
    raise SourceError(f"a host is a name alone, which goes with every port, not {name[:64]!r}{meant}")


def parse_origins(origins: Iterable[str]) -> tuple[str, ...]:
    """The origins of further pages as browsers send them: in lower case, without a usual port or a path.

    Raises ``SourceError`` for what no browser sends.
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
    raise SourceError(f"an origin is a scheme and a host, such as 'https://app.example', not {origin[:64]!r}{meant}")


def _split_address(address: str) -> tuple[str, str, str]:
    """Scheme, host with an unusual port, and path of an address; all empty where it is none, or names a user."""
    try:
        parts = urlsplit(address.lower())
        port = parts.port
    except ValueError:
        return "", "", ""
    if not parts.hostname or "@" in parts.netloc:
        return "", "", ""
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = port is None or _DEFAULT_PORTS.get(parts.scheme) == port
    return parts.scheme, name if usual else f"{name}:{port}", parts.path + parts.query + parts.fragment


def check_token(host: str, token: str | None) -> None:
    """Raise ``SourceError`` where anybody could ask: beyond loopback a token is needed, and it must not be short."""
    if token is None and not is_loopback(host):
        raise SourceError(f"{host} can be reached from other machines: that needs a token", code="token-needed")
    if token is not None and (len(token) < _MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable()):
        raise SourceError(f"a token has at least {_MIN_TOKEN_LENGTH} printable ASCII characters", code="bad-token")


def token_in(file: str | None) -> str | None:
    """The token that a file holds, ``None`` without a file; raises ``SkillError`` when it cannot be read."""
    from prowess.files.read import OpenFile  # noqa: PLC0415 - only with a token

    if file is None:
        return None
    folder, name = os.path.split(os.path.abspath(os.path.expanduser(file)))
    try:
        with OpenFile(folder, (name,)) as found:
            return found.read_all(_MAX_TOKEN_LENGTH).decode("ascii").strip()
    except (ResourceError, UnicodeDecodeError):
        raise SkillError(f"cannot read the token in {file}", code="bad-token") from None
