"""The configuration with which each MCP client starts ``prowess serve``, as text for the client's own file."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.text.escapes import dump_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SERVER_NAME = "skills"
"""The name of the server in every configuration."""


class ClientConfiguration(NamedTuple):
    """How one client learns to start a server."""

    title: str
    place: str
    """The file, or the kind of program, that the text goes into."""
    write: Callable[[str, Sequence[str]], str]
    """Returns the text for the path of the program and its arguments."""
    advice: str = ""
    """What a person has to do besides, if anything."""


def _json_writer(table: str, **fields: object) -> Callable[[str, Sequence[str]], str]:
    """Return a writer of JSON with the server in ``table``; ``fields`` are what the client needs besides."""

    def write(program: str, arguments: Sequence[str]) -> str:
        server: dict[str, Any] = {**fields, "command": program, "args": list(arguments)}
        return dump_json({table: {SERVER_NAME: server}})

    return write


def _write_toml(program: str, arguments: Sequence[str]) -> str:
    """Return the table of Codex in TOML."""
    # Without 'required' Codex leaves out a server that fails to start, and says nothing.
    rows = (
        f"[mcp_servers.{SERVER_NAME}]",
        f"command = {_quote_string(program)}",
        f"args = {_quote_list(arguments)}",
        "required = true",
    )
    return "\n".join(rows)


def _quote_string(text: str) -> str:
    """Return a string literal that TOML and Python both read, with invisible characters escaped."""
    return f'"{"".join(map(_escape_char, text))}"'


def _escape_char(char: str) -> str:
    """Return a character as it is written in a string of TOML or Python."""
    # JSON escapes a character beyond 16 bits as two halves, which TOML and Python do not join.
    escaped = dump_json(char)[1:-1]
    return f"\\U{ord(char):08x}" if char > "\uffff" and escaped != char else escaped


def _quote_list(strings: Sequence[str]) -> str:
    return f"[{', '.join(map(_quote_string, strings))}]"


def _write_openai_agents(program: str, arguments: Sequence[str]) -> str:
    """Return a program for openai-agents."""
    # The package waits five seconds for a server by default; a busy machine needs more.
    return f"""from agents.mcp import MCPServerStdio

server = MCPServerStdio(
    params={{
        "command": {_quote_string(program)},
        "args": {_quote_list(arguments)},
    }},
    name="{SERVER_NAME}",
    client_session_timeout_seconds=30,
)"""


def _write_pydantic_ai(program: str, arguments: Sequence[str]) -> str:
    """Return a program for pydantic-ai."""
    # With cached tools the agent would not learn of new skills. The package waits five seconds for a server by default;
    # a busy machine needs more.
    return f"""from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

server = MCPToolset(
    StdioTransport(
        command={_quote_string(program)},
        args={_quote_list(arguments)},
    ),
    id="{SERVER_NAME}",
    cache_tools=False,
    init_timeout=30,
)"""


CONFIGURATIONS = {
    # Without alwaysLoad the model has to search for a tool before it can call it.
    "claude-code": ClientConfiguration(
        "Claude Code",
        ".mcp.json in a project; for all projects, mcpServers in ~/.claude.json",
        _json_writer("mcpServers", type="stdio", alwaysLoad=True),
        "Claude Code asks once whether the servers of a project's .mcp.json may start.",
    ),
    "claude-desktop": ClientConfiguration(
        "Claude Desktop",
        "claude_desktop_config.json (Settings, Developer, Edit Config)",
        _json_writer("mcpServers"),
        "Quit and start Claude Desktop after a change of the file.",
    ),
    "codex": ClientConfiguration("Codex", "~/.codex/config.toml", _write_toml),
    "cursor": ClientConfiguration(
        "Cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in a project", _json_writer("mcpServers")
    ),
    "gemini": ClientConfiguration(
        "Gemini CLI",
        "~/.gemini/settings.json, or .gemini/settings.json in a project",
        _json_writer("mcpServers"),
        "Gemini CLI starts no server in a folder that is not trusted: /permissions trusts it.",
    ),
    "openai-agents": ClientConfiguration(
        "openai-agents",
        "a program",
        _write_openai_agents,
        "Connect it (async with server), then Agent(mcp_servers=[server]).",
    ),
    "pydantic-ai": ClientConfiguration(
        "pydantic-ai", "a program", _write_pydantic_ai, "Then Agent(…, toolsets=[server])."
    ),
    "vscode": ClientConfiguration(
        "VS Code",
        ".vscode/mcp.json in a project, or the user's own file (MCP: Open User Configuration)",
        _json_writer("servers", type="stdio"),
        "VS Code asks once whether the server may start.",
    ),
    "zed": ClientConfiguration("Zed", "settings.json (zed: open settings file)", _json_writer("context_servers")),
}
"""The configurations by the names that ``prowess serve --config`` takes."""


def locate_program() -> str:
    """Return the absolute path of the installed ``prowess``: the running one, or the one beside this Python."""
    # Links are not resolved: an installer may put a link on PATH and replace what it points to.
    started = Path(sys.argv[0])
    return (
        os.path.abspath(started)
        if started.stem == "prowess" and started.is_file()
        else str(Path(sysconfig.get_path("scripts"), "prowess"))
    )
