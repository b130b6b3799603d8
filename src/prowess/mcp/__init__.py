"""Skills over the Model Context Protocol (the extra ``mcp``): ``serve``, ``check``, ``survey``, and ``Server``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.mcp.serve import Survey, check, serve, survey
from prowess.mcp.served_skills import LeftOut, Refused
from prowess.serving.bind import token_in

if TYPE_CHECKING:
    from prowess.mcp.server import Server


def __getattr__(name: str) -> Any:
    if name != "Server":
        raise AttributeError(f"module 'prowess.mcp' has no attribute {name!r}")
    from prowess.mcp.serve import load_server_class

    return load_server_class()


__all__ = ["LeftOut", "Refused", "Server", "Survey", "check", "serve", "survey", "token_in"]
