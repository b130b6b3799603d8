"""The clients that are tested: how each is installed, configured and started, in a home folder that was empty.

Everything lies in ``.clients`` of the checkout, which git ignores. No client gets a key or an address but that of the
provider on loopback, and each is told to send nothing to its maker and to look for no newer version.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from filelock import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable

    Prepare = Callable[[Path, str, str], "Start"]
    """Writes the files of a home, from the home, the printed configuration and the address of the provider."""

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".clients"
FOREIGN = Path(__file__).parent / "foreign"
QUESTION = "Do what the skill says."
INSTALL_SECONDS = 900
ANSWER_SECONDS = 120


class NotInstalledError(Exception):
    """A client that cannot be installed here, or does not start; the message says why."""


class Start(NamedTuple):
    """What is added to the client's program for one question."""

    arguments: list[str]
    environment: dict[str, str]


class Client(NamedTuple):
    """One client."""

    configuration: str
    """The name that ``prowess serve --config`` has for it."""
    packages: tuple[str, ...]
    """What is installed, each in one version; from npm where the client is a program of Node."""
    program: str
    """The file that is started, below the folder of the client; by Node where the client is from npm."""
    prepare: Prepare


def _prepare_claude(home: Path, printed: str, address: str) -> Start:
    servers = home / "mcp.json"
    servers.write_text(printed, encoding="utf-8")
    words = ["-p", QUESTION, "--mcp-config", str(servers), "--strict-mcp-config", "--allowedTools", "mcp__skills"]
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER")
    provider = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "none"}
    return Start(words, {**dict.fromkeys((*quiet, "DISABLE_ERROR_REPORTING"), "1"), **provider})


def _prepare_claude_deferring(home: Path, printed: str, address: str) -> Start:
    """Configure the server as ``claude mcp add`` does: its tools have to be searched for before they can be called."""
    servers = json.loads(printed)
    del servers["mcpServers"]["skills"]["alwaysLoad"]
    return _prepare_claude(home, json.dumps(servers), address)


def _prepare_codex(home: Path, printed: str, address: str) -> Start:
    settings = f"""model = "fake-model"
model_provider = "fake"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.fake]
name = "fake"
base_url = "{address}/v1"
wire_api = "responses"

"""
    _write(home / ".codex" / "config.toml", settings + printed)
    return Start(["exec", "--skip-git-repo-check", QUESTION], {})


def _prepare_gemini(home: Path, printed: str, address: str) -> Start:
    servers = json.loads(printed)
    # Without a person at a terminal it hides the tools that it would have to ask about.
    servers["mcpServers"]["skills"]["trust"] = True
    settings = {
        **servers,
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    }
    _write(home / ".gemini" / "settings.json", json.dumps(settings))
    _write(home / ".gemini" / "trustedFolders.json", json.dumps({str(home / "work"): "TRUST_FOLDER"}))
    provider = {"GOOGLE_GEMINI_BASE_URL": address, "GEMINI_API_KEY": "none", "GEMINI_TELEMETRY_ENABLED": "false"}
    return Start(["--prompt", QUESTION, "--model", "gemini-2.5-pro"], provider)


def _prepare_program(name: str) -> Prepare:
    def prepare(home: Path, printed: str, address: str) -> Start:
        configuration = home / "configuration.py"
        configuration.write_text(printed, encoding="utf-8")
        return Start([str(FOREIGN / name), str(configuration), address, QUESTION], {})

    return prepare


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


_CLAUDE = ("@anthropic-ai/claude-code@2.1.325",)
_WRAPPER = "node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs"
CLIENTS = {
    "Claude Code": Client("claude-code", _CLAUDE, _WRAPPER, _prepare_claude),
    "Claude Code, tools deferred": Client("claude-code", _CLAUDE, _WRAPPER, _prepare_claude_deferring),
    "Codex": Client("codex", ("@openai/codex@0.166.0",), "node_modules/.bin/codex", _prepare_codex),
    "Gemini CLI": Client("gemini", ("@google/gemini-cli@0.61.0",), "node_modules/.bin/gemini", _prepare_gemini),
    "openai-agents": Client(
        "openai-agents", ("openai-agents==0.24.0",), "bin/python", _prepare_program("openai_agents_client.py")
    ),
    "pydantic-ai": Client(
        "pydantic-ai",
        ("pydantic-ai-slim[mcp,openai]==2.66.0",),
        "bin/python",
        _prepare_program("pydantic_ai_client.py"),
    ),
}


# -- installing --------------------------------------------------------------------------------------------------------


def install_client(client: Client) -> list[str]:
    """The command that starts the client, which is installed where it is not yet, in the version that is named.

    Raises ``NotInstalledError`` where it cannot be had, or does not start.
    """
    folder = FOLDER / client.configuration
    is_python = client.program == "bin/python"
    FOLDER.mkdir(exist_ok=True)
    with FileLock(FOLDER / f"{client.configuration}.lock"):
        ready = folder / "ready"
        if not ready.exists() or ready.read_text(encoding="utf-8") != " ".join(client.packages):
            shutil.rmtree(folder, ignore_errors=True)
            install = _install_from_index if is_python else _install_from_npm
            install(folder, client.packages)
            ready.write_text(" ".join(client.packages), encoding="utf-8")
    command = [*(() if is_python else ("node",)), str(folder / client.program)]
    _run(*command, "--version", seconds=ANSWER_SECONDS)
    return command


def _install_from_npm(folder: Path, packages: tuple[str, ...]) -> None:
    if shutil.which("npm") is None:
        raise NotInstalledError("there is no npm here")
    # What their scripts build or move is found without: nothing of theirs has to run to be installed.
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder))
    folder.mkdir(parents=True)
    _run("npm", "install", *options, *packages, seconds=INSTALL_SECONDS)


def _install_from_index(folder: Path, packages: tuple[str, ...]) -> None:
    venv.create(folder, with_pip=True)
    pip = (str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check")
    _run(*pip, "install", "--quiet", "--prefer-binary", *packages, seconds=INSTALL_SECONDS)


def _run(*command: str, seconds: int) -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(str(error)) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"it ended with status {done.returncode}"]
        raise NotInstalledError(lines[-1])


# -- asking ------------------------------------------------------------------------------------------------------------


def prepare_client(client: Client, home: Path, library: Path, address: str) -> Start:
    """Write a home for a client that has ``prowess serve`` of the library as its server; how it is started there."""
    (home / "work").mkdir(parents=True)
    prowess = Path(sys.executable).with_name("prowess")
    printed = subprocess.run(
        [prowess, "serve", "--config", client.configuration, library], capture_output=True, text=True, check=True
    )
    start = client.prepare(home, printed.stdout, address)
    # No variable of whoever runs the tests: a key, a proxy or a configuration of theirs must not be found.
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm-256color", **start.environment}
    return Start(start.arguments, environment)


def run_client(command: list[str], home: Path, start: Start) -> None:
    """Start a client in its home, and wait for its answer."""
    done = subprocess.run(
        [*command, *start.arguments],
        cwd=home / "work",
        env=start.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=ANSWER_SECONDS,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]


def ask_client(client: Client, command: list[str], home: Path, library: Path, address: str) -> None:
    """Put one question to a client that has ``prowess serve`` of the library as its server, and wait for its answer."""
    run_client(command, home, prepare_client(client, home, library, address))
