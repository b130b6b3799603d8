"""Every configuration for MCP clients that we print starts a server, whatever lies in the client's working folder."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess.cli.commands.serve import CONFIGURATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Command

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*") if path.is_file())
PROGRAM = Path(sysconfig.get_path("scripts"), "prowess")
JSON_TEXT = re.compile(r"^```json\n(\{.*?)^```$|`(\{\"(?:mcpServers|servers)\".*?)`", re.MULTILINE | re.DOTALL)
TOML_TEXT = re.compile(r"^```toml\n(\[mcp_servers.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL_LINE = re.compile(r"claude mcp add \S+ -- ([^`\n]+)")
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
# Modules that Python, we, or what we need would import; and the package itself.
SHADOWS = ("json.py", "click.py", "yaml.py", "importlib.py", "asyncio.py", "prowess/__init__.py", "mcp/__init__.py")


def server_tables(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key in ("mcpServers", "servers", "mcp_servers", "context_servers"):
        yield from data.get(key, {}).values()


def shell_commands(text: str) -> list[str]:
    """The commands in ``text`` that start a server, each as a line for a shell."""
    tables = [json.loads(match[1] or match[2]) for match in JSON_TEXT.finditer(text)]
    tables += [tomllib.loads(match[1]) for match in TOML_TEXT.finditer(text)]
    commands = [
        " ".join(map(quote, (server["command"], *server["args"])))
        for table in tables
        for server in server_tables(table)
        if "command" in server
    ]
    return commands + SHELL_LINE.findall(text)


def printed_commands() -> list[str]:
    commands = [line for page in PAGES for line in shell_commands(page.read_text(encoding="utf-8"))]
    return list(dict.fromkeys(commands))


def test_the_pages_hold_configurations_of_each_kind() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    kinds = (JSON_TEXT.search(text), TOML_TEXT.search(text), SHELL_LINE.search(text))
    assert all(kinds)
    assert len(printed_commands()) >= 2


@pytest.fixture
def working_folder(tmp_path: Path) -> Path:
    """A folder whose modules tell, by a file ``ran``, that they were imported."""
    folder = tmp_path / "work"
    for name in SHADOWS:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + '\\n')\n", encoding="utf-8")
    return folder


def start(line: str, working_folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder as a client does, with one greeting and then the end of its input."""
    root = working_folder.parent
    prowess.create_skill("notes", root / "skills", description="Writes notes.")
    here = re.sub(r"/path/to/(\.venv|env)/bin/prowess", str(PROGRAM), line).replace(
        "/path/to/skills", str(root / "skills")
    )
    path = os.pathsep.join((str(PROGRAM.parent), os.environ.get("PATH", "")))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        ["sh", "-c", here],
        cwd=working_folder,
        env={**environment, "PATH": path, "HOME": str(root)},
        input=json.dumps(HELLO) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("line", printed_commands())
def test_a_printed_configuration_runs_nothing_of_the_working_folder(line: str, working_folder: Path) -> None:
    done = start(line, working_folder)
    assert not (working_folder.parent / "ran").exists(), (working_folder.parent / "ran").read_text(encoding="utf-8")
    assert json.loads(done.stdout)["id"] == 1, done.stderr


def test_the_help_of_serve_prints_one_of_these_commands(command: Command) -> None:
    (line,) = shell_commands(command("serve", "--help").out)
    assert line in printed_commands()


def test_no_page_or_example_advises_a_command_that_searches_the_working_folder() -> None:
    advice = re.compile(r"-m\W+prowess\b(?!\.)")
    assert [page.name for page in (*PAGES, *EXAMPLES) if advice.search(page.read_text("utf-8", "replace"))] == []


def test_the_module_as_a_program_takes_its_commands_from_what_is_installed(working_folder: Path) -> None:
    """Python itself looks into the working folder before any of our code runs; the rest of our imports do not."""
    for name in ("json.py", "importlib.py", "prowess/__init__.py"):
        (working_folder / name).unlink()
    (working_folder / "prowess").rmdir()
    done = subprocess.run(
        [sys.executable, "-m", "prowess", "list"], cwd=working_folder, capture_output=True, timeout=60, check=False
    )
    assert not (working_folder.parent / "ran").exists()
    assert done.returncode == 0, done.stderr


# -- prowess serve --config --------------------------------------------------------------------------------------------

TABLES: dict[str, tuple[str, dict[str, Any]]] = {
    "claude-code": ("mcpServers", {"type": "stdio", "alwaysLoad": True}),
    "claude-desktop": ("mcpServers", {}),
    "codex": ("mcp_servers", {"required": True}),
    "cursor": ("mcpServers", {}),
    "gemini": ("mcpServers", {}),
    "vscode": ("servers", {"type": "stdio"}),
    "zed": ("context_servers", {}),
}
"""For each client that reads a file: where its servers are, and what it wants besides the command."""
PROGRAMS = ("openai-agents", "pydantic-ai")
NAMES = (
    "skills",
    "with space",
    "it's",
    'a "quoted" one',
    "übung",
    "del\x7fete",
    "back\\slash",
    "\U0001f3f4\U000e0067\U000e007f",
)


@pytest.fixture
def folders(project: Path) -> list[str]:
    """Folders in the working folder whose names have to be quoted, by their absolute paths."""
    for name in NAMES:
        (project / name).mkdir()
    return [str(project / name) for name in NAMES]


@pytest.mark.parametrize("client", TABLES)
def test_the_printed_configuration_names_the_program_and_every_folder_absolutely(
    command: Command, folders: list[str], client: str
) -> None:
    printed = command("serve", *NAMES, "--no-watch", "--without", "prompts", "--config", client)
    table, more = TABLES[client]
    read = tomllib.loads if client == "codex" else json.loads
    arguments = ["serve", *folders, "--without", "prompts", "--no-watch"]
    assert read(printed.out) == {table: {"skills": {"command": str(PROGRAM), "args": arguments, **more}}}
    assert CONFIGURATIONS[client].title in printed.err


@pytest.mark.parametrize("client", PROGRAMS)
def test_the_printed_program_names_the_program_and_every_folder_absolutely(
    command: Command, folders: list[str], client: str
) -> None:
    tree = ast.parse(command("serve", *NAMES, "--config", client).out)
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert {str(PROGRAM), *folders} < set(values)


@pytest.mark.parametrize("client", CONFIGURATIONS)
def test_the_page_about_mcp_shows_what_is_printed(client: str) -> None:
    page = (ROOT / "docs" / "how-to" / "mcp.md").read_text(encoding="utf-8")
    text = CONFIGURATIONS[client].write("/path/to/.venv/bin/prowess", ["serve", "/path/to/skills"])
    assert f"\n{text}\n```\n" in page
    assert f"**{CONFIGURATIONS[client].title}**" in page


def test_every_client_that_is_offered_is_tested() -> None:
    assert {*TABLES, *PROGRAMS} == set(CONFIGURATIONS)


def test_a_printed_configuration_of_a_folder_that_is_not_there_is_refused(command: Command) -> None:
    refused = command("serve", "nope", "--config", "codex")
    assert (refused.status, refused.out, "error[missing-root]" in refused.err) == (3, "", True)


def test_no_configuration_is_printed_of_a_folder_that_no_client_could_name(command: Command, project: Path) -> None:
    (project / "caf\udce9").mkdir()
    refused = command("serve", "caf\udce9", "--config", "codex")
    assert (refused.status, refused.out) == (3, "")
    assert "is not UTF-8, and no client's configuration can hold it" in refused.err


@pytest.mark.parametrize("words", [("--http",), ("--check",), ("--json",)])
def test_a_configuration_is_only_of_a_server_that_the_client_starts(command: Command, words: tuple[str, ...]) -> None:
    refused = command("serve", "--config", "codex", *words)
    assert (refused.status, refused.out) == (2, "")
    assert "leave --http, --check and --json out" in refused.err


def test_a_printed_configuration_starts_the_server_from_any_folder(command: Command, working_folder: Path) -> None:
    prowess.create_skill("notes", working_folder.parent / "served", description="Writes notes.")
    printed = command("serve", str(working_folder.parent / "served"), "--no-watch", "--config", "cursor")
    (line,) = shell_commands(f"```json\n{printed.out}```\n")
    assert "Writes notes." in start(line, working_folder).stdout
