"""Where a server on HTTP listens, and who could reach it there."""

from __future__ import annotations

import os
from ipaddress import ip_address

from prowess.errors import ResourceError, SkillError, SourceError
from prowess.mcp.guard import LOOPBACK

DEFAULT = "127.0.0.1:8848"
_SHORTEST_TOKEN, _LONGEST_TOKEN = 16, 4_096
_HIGHEST_PORT, _PORT_DIGITS = 65_535, 5


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what is bound to ``host``."""
    if host.lower() in LOOPBACK:
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
        host, port = bind, DEFAULT.rpartition(":")[2]
    if not (port.isascii() and port.isdigit()):
        raise SourceError(f"no port in {bind[:64]!r}: write HOST:PORT")
    if len(port) > _PORT_DIGITS or int(port) > _HIGHEST_PORT:
        raise SourceError(f"port {port[:64]} is out of range: a port is a number from 0 to {_HIGHEST_PORT:,}")
    return host.strip("[]") or "127.0.0.1", int(port)


def check_token(host: str, token: str | None) -> None:
    """Raise ``SourceError`` where anybody could ask: beyond loopback a token is needed, and it must not be short."""
    if token is None and not is_loopback(host):
        raise SourceError(f"{host} can be reached from other machines: that needs a token", code="token-needed")
    if token is not None and (len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise SourceError(f"a token has at least {_SHORTEST_TOKEN} printable ASCII characters", code="bad-token")


def token_in(file: str | None) -> str | None:
    """The token that a file holds, ``None`` without a file; raises ``SkillError`` when it cannot be read."""
    from prowess.files.reading import OpenFile  # noqa: PLC0415 - only with a token

    if file is None:
        return None
    folder, name = os.path.split(os.path.abspath(os.path.expanduser(file)))
    try:
        with OpenFile(folder, (name,)) as found:
            return found.read_all(_LONGEST_TOKEN).decode("ascii").strip()
    except (ResourceError, UnicodeDecodeError):
        raise SkillError(f"cannot read the token in {file}", code="bad-token") from None
