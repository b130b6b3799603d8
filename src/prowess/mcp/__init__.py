"""Skills over the Model Context Protocol: ``serve``, ``check``, and ``Server`` for programs (the extra ``mcp``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.mcp.binding import token_in
from prowess.mcp.serve import check, serve
from prowess.mcp.shelf import Refused

if TYPE_CHECKING:
    from prowess.mcp.server import Server


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the one name below
    if name != "Server":
        raise AttributeError(f"module 'prowess.mcp' has no attribute {name!r}")
    from prowess.mcp.serve import server_class  # noqa: PLC0415 - the SDK takes a second to load

    return server_class()


__all__ = ["Refused", "Server", "check", "serve", "token_in"]
