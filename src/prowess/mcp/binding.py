"""Where a server on HTTP listens, and who could reach it there."""

from __future__ import annotations

from ipaddress import ip_address

from prowess.errors import SourceError
from prowess.mcp.guard import LOOPBACK

DEFAULT = "127.0.0.1:8848"
_SHORTEST_TOKEN = 16


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what is bound to ``host``."""
    if host.lower() in LOOPBACK:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def parse_bind(bind: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``, ``[HOST]:PORT``, ``HOST`` or ``:PORT``."""
    host, found, port = bind.rpartition(":")
    if not found or bind.endswith("]"):
        host, port = bind, DEFAULT.rpartition(":")[2]
    if not port.isdecimal() or int(port) > 65_535:  # noqa: PLR2004 - the highest port
        raise SourceError(f"no port in {bind!r}: write HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def check_token(host: str, token: str | None) -> None:
    """Raise ``SourceError`` where anybody could ask: beyond loopback a token is needed, and it must not be short."""
    if token is None and not is_loopback(host):
        raise SourceError(f"{host} can be reached from other machines: that needs a token", code="token-needed")
    if token is not None and (len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise SourceError(f"a token has at least {_SHORTEST_TOKEN} printable ASCII characters", code="token-needed")
