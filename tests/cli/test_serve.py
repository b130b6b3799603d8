"""``prowess serve`` as a client starts it: a process that speaks the protocol and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO
from urllib.parse import urlsplit

import pytest
from mcp import Client

import prowess
from tests.fork_server import ForkedProcess, fork_server_for
from tests.hostile.http_servers import Served, request
from tests.mcp_peers import Talk, put, skill_md

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from tests.cli.conftest import Command

SECONDS = 60
TOKEN = "a-long-random-token-0123456789"  # noqa: S105 - of the tests
posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def test_a_client_gets_the_protocol_on_standard_output_and_the_server_ends_with_it(tmp_path: Path) -> None:
    """What the extension leaves out is said on the error stream, and nothing else."""
    prowess.create_skill("notes", tmp_path, description="Writes notes.")
    put(tmp_path, "numbered/SKILL.md", skill_md("numbered", fields="metadata:\n  version: 1.0\n"))
    words = [sys.executable, "-m", "prowess", "serve", str(tmp_path), "--no-watch"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(HELLO).encode() + b"\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        rest, said = server.communicate(timeout=60)
    assert (answer["id"], "tools" in answer["result"]["capabilities"]) == (1, True)
    assert "- notes: Writes notes." in answer["result"]["instructions"]
    assert "- numbered: Does it." in answer["result"]["instructions"]
    assert (server.returncode, rest) == (0, b"")
    why = f"prowess serve --check {tmp_path} says why"
    assert said.decode() == f"warning: the skills extension leaves out 1 skill: {why}\n"


def test_what_would_not_be_served_is_named(command: Command, tmp_path: Path) -> None:
    folder = prowess.create_skill("notes", tmp_path, description="Writes notes.")
    assert command("serve", "--check", str(tmp_path)).status == 0
    folder.rename(tmp_path / "other")
    found = command("serve", "--check", "--json", str(tmp_path))
    assert found.status == 1
    assert [issue["code"] for one in found.data["refused"] for issue in one["issues"]] == ["name-mismatch"]


def test_a_check_that_finds_no_skills_does_not_say_that_every_one_is_served(command: Command, project: Path) -> None:
    (project / "empty").mkdir()
    for words in (("empty",), ("--json", "empty")):
        assert command("serve", "--check", *words).status == 0
    assert (
        command("serve", "--check", "empty").out == "There are no skills: nothing would be served. Looked in: empty\n"
    )
    shutil.rmtree(project / ".agents")
    assert command("serve", "--check").out.endswith("Looked in: the standard places ('prowess list' names them)\n")


def test_whoever_starts_it_at_a_terminal_is_told_that_it_waits_for_a_client(project: Path) -> None:
    """A person who tries the command would see nothing at all otherwise; a client's pipes are told nothing."""
    master, slave = pty.openpty()
    fork_server = fork_server_for(Path(__file__).parent / "command_inside.py")
    with TemporaryFile() as stdout, TemporaryFile() as stderr:
        words = ["serve", str(project / ".agents/skills")]
        server = fork_server.fork(words, {}, None, stdin=slave, stdout=stdout, stderr=stderr)
        os.close(slave)
        os.write(master, b"\x04")  # the end of the input, as Ctrl-D gives it
        server.wait(SECONDS)
        os.close(master)
        stderr.seek(0)
        said = stderr.read().decode()
    assert said.startswith("Waiting for an MCP client on standard input and output; Ctrl-C ends it.")
    assert "prowess serve --config CLIENT" in said


def test_the_check_has_totals_and_no_padding(command: Command, tmp_path: Path) -> None:
    put(tmp_path, "fine/SKILL.md", skill_md("fine"))
    put(tmp_path, "numbered/SKILL.md", skill_md("numbered", fields="metadata:\n  version: 1.0\n"))
    put(tmp_path, "a-much-longer-name/SKILL.md", "no head\n")
    found = command("serve", "--check", str(tmp_path))
    *rows, totals = found.out.splitlines()
    assert [row for row in rows if "  " in row.strip()] == []
    assert "would serve 2 skills; the skills extension would serve 1 and leave out 1; 1 is not served at all" in totals
    data = command("serve", "--check", "--json", str(tmp_path)).data
    assert (data["loaded"], data["served"]) == (2, 1)
    assert [one["loads"] for one in data["refused"]] == [False, True]


def test_another_machine_needs_a_token(command: Command, tmp_path: Path) -> None:
    refused = command("serve", str(tmp_path), "--http", "0.0.0.0:0")
    assert (refused.status, "token-needed" in refused.err) == (3, True)
    missing = command("serve", str(tmp_path), "--http", "0.0.0.0:0", "--token-file", str(tmp_path / "none"))
    assert (missing.status, "bad-token" in missing.err) == (3, True)


def test_a_short_token_is_not_a_token(command: Command, tmp_path: Path) -> None:
    secret = put(tmp_path, "token", "short\n")
    refused = command("serve", str(tmp_path), "--http", "0.0.0.0:0", "--token-file", str(secret))
    assert refused.status == 3
    assert "16" in refused.err
    assert "short" not in refused.err.replace("a short", "")


@pytest.mark.parametrize("words", [("nope",), ("--http", "127.0.0.1:0", "nope"), ("--check", "nope")])
def test_a_folder_that_is_not_there_is_named(command: Command, words: tuple[str, ...]) -> None:
    refused = command("serve", *words)
    assert (refused.status, "error[missing-root]" in refused.err, "/nope'" in refused.err) == (3, True, True)


@pytest.mark.parametrize("words", [(), ("--check",), ("--config", "cursor")])
def test_a_file_in_place_of_a_folder_is_told_to_be_a_file(
    command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    file = put(tmp_path, "notes.txt", "x")
    refused = command("serve", str(file), *words)
    assert (refused.status, "error[not-a-directory]" in refused.err) == (3, True)
    assert f"{str(file)!r} is not a folder: name a skill's folder or a folder of skills" in refused.err


def test_a_folder_after_http_is_a_mistake_that_is_named(command: Command, tmp_path: Path) -> None:
    refused = command("serve", "--http", str(tmp_path))
    assert refused.status == 2
    assert "name folders before --http" in refused.err


# -- on HTTP -----------------------------------------------------------------------------------------------------------


class Serving(NamedTuple):
    """A server on HTTP: its address, its process, and what it prints."""

    url: str
    process: ForkedProcess
    out: TextIO
    err: TextIO

    def stop(self, ask: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Its exit status after this signal, and what it had yet to print, on either stream."""
        status = self.process.end(ask)
        return status, self.out.read() + self.err.read()


@contextmanager
def serving(root: Path, *words: str, env: dict[str, str] | None = None) -> Iterator[Serving]:
    """A server on HTTP; ended by the block, unless it is stopped in there."""
    command = ["serve", str(root), "--http", "127.0.0.1:0", *words]
    (read_out, out), (read_err, err) = os.pipe(), os.pipe()
    with os.fdopen(read_out) as printed, os.fdopen(read_err) as complaints, Path(os.devnull).open() as nothing:
        fork_server = fork_server_for(Path(__file__).parent / "command_inside.py")
        process = fork_server.fork(command, env or {}, None, stdin=nothing, stdout=out, stderr=err)
        os.close(out)
        os.close(err)
        try:
            said = complaints.readline()
            assert said.startswith("Serving skills at http://127.0.0.1:"), said
            yield Serving(said.split()[-1], process, printed, complaints)
        finally:
            if not process.is_over:
                process.end()


def test_a_server_without_a_skill_says_so(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert f"there are no skills yet, and new ones are served as they come; looked in: {tmp_path}" in (
            server.err.readline()
        )


def test_how_many_skills_are_not_served_is_said_after_the_address(tmp_path: Path) -> None:
    prowess.create_skill("notes", tmp_path, description="Writes notes.")
    prowess.create_skill("moved", tmp_path, description="Is moved.").rename(tmp_path / "away")
    put(tmp_path, "broken/SKILL.md", "no head\n")
    with serving(tmp_path) as server:
        said = server.err.readline()
        why = f"prowess serve --check {tmp_path} says why"
        assert said == f"warning: the skills extension leaves out 1 skill, and 1 skill cannot be loaded: {why}\n"
        assert asked(server.url, lambda talk: talk.client.list_tools()) is not None
        assert server.stop()[1] == ""


def asked(url: str, words: Callable[[Talk], Coroutine[Any, Any, Any]]) -> Any:
    """What a client of the official SDK gets."""

    async def whole() -> Any:
        async with asyncio.timeout(SECONDS), Client(url, cache=None) as client:
            return await words(Talk(client))

    return asyncio.run(whole())


def raw(url: str) -> Served:
    parts = urlsplit(url)
    return Served(str(parts.hostname), int(parts.port or 0), 0)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "served"
    for name in ("notes", "other"):
        put(root, f"{name}/SKILL.md", skill_md(name, body="Write it down.\n"))
    return root


async def everything(connection: Talk) -> dict[str, object]:
    """Which parts there are, and what they hold."""
    capabilities = connection.client.server_capabilities
    found: dict[str, object] = {"instructions": connection.client.instructions}
    if capabilities.extensions:
        found["skills"] = [entry["frontmatter"]["name"] for entry in await connection.all_skills()]
    if capabilities.tools:
        found["loaded"] = (await connection.client.call_tool("load_skill", {"name": "notes"})).content[0].text  # type: ignore[union-attr]
    if capabilities.prompts:
        found["prompts"] = [row["name"] for row in (await connection.ask("prompts/list"))["prompts"]]
    return found


def test_a_client_finds_every_part_on_http(notes: Path) -> None:
    with serving(notes) as server:
        found = asked(server.url, everything)
    assert found["skills"] == found["prompts"] == ["notes", "other"]
    assert "Write it down." in found["loaded"]
    assert "notes" in found["instructions"]


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize(
    ("part", "gone"), [("extension", "skills"), ("tools", "loaded"), ("instructions", ""), ("prompts", "prompts")]
)
def test_each_part_can_be_switched_off(notes: Path, part: str, gone: str) -> None:
    with serving(notes, "--without", part) as server:
        found = asked(server.url, everything)
    assert {"skills", "loaded", "prompts"} - found.keys() == ({gone} if gone else set())
    assert (found["instructions"] is None) == (part == "instructions")


def test_the_listing_keeps_to_its_budget(tmp_path: Path) -> None:
    for number in range(40):
        put(tmp_path, f"s{number:02}/SKILL.md", skill_md(f"s{number:02}", description="Does a thing. " * 20))
    told = []
    for words in (("--budget", "300"), ("--budget", "3000", "--max-chars", "20000", "--listing", "instructions")):
        with serving(tmp_path, *words) as server:
            told.append(asked(server.url, everything_told))
    sizes = [len(instructions) for instructions, _ in told]
    assert sizes[0] < 300 * 8 < 4_000 < sizes[1]
    assert ["- s00" in description for _, description in told] == [True, False]


async def everything_told(connection: Talk) -> tuple[str, str]:
    """The instructions, and the description of the tool that loads."""
    tools = (await connection.ask("tools/list"))["tools"]
    return connection.client.instructions or "", tools[0]["description"]


def test_a_place_that_no_listing_can_have_is_named(command: Command, tmp_path: Path) -> None:
    refused = command("serve", str(tmp_path), "--listing", "prompt")
    assert (refused.status, "'prompt'" in refused.err, "instructions, tools" in refused.err) == (3, True, True)


@pytest.mark.parametrize("by_file", [True, False])
def test_a_token_is_asked_for_by_file_or_by_variable(notes: Path, tmp_path: Path, by_file: bool) -> None:
    words = ("--token-file", str(put(tmp_path, "token", f"{TOKEN}\n"))) if by_file else ()
    with serving(notes, *words, env={} if by_file else {"PROWESS_MCP_TOKEN": TOKEN}) as running:
        server = raw(running.url)
        assert server.ask("skills/list").status == 401
        assert server.ask("skills/list", f"Authorization: Bearer {TOKEN}x").status == 401
        assert server.ask("skills/list", f"Authorization: Bearer {TOKEN}").status == 200


def test_further_names_and_pages_can_be_allowed(notes: Path) -> None:
    body = request("skills/list")
    with serving(notes, "--allow-host", "skills.example", "--allow-origin", "https://app.example") as running:
        server = raw(running.url)
        method = "Mcp-Method: skills/list"
        assert server.post(body, method, host="skills.example").status == 200
        assert server.post(body, method, host="other.example").status == 421
        assert server.post(body, method, "Origin: https://app.example").status == 200
        assert server.post(body, method, "Origin: https://evil.example").status == 403


def test_clients_of_a_proxy_are_not_told_where_files_lie(notes: Path) -> None:
    """A server that goes by another name is asked by a proxy on its own machine, for clients that are elsewhere."""
    with serving(notes, "--allow-host", "skills.example", "--no-watch") as server:
        loaded = asked(server.url, everything)["loaded"]
    assert "Write it down." in loaded
    assert str(notes) not in loaded


@pytest.mark.parametrize("watches", [True, False])
def test_changes_are_seen_unless_nobody_is_to_look(notes: Path, watches: bool) -> None:
    with serving(notes, *(() if watches else ("--no-watch",))) as server:
        assert asked(server.url, everything)["skills"] == ["notes", "other"]

        async def until_there(connection: Talk) -> list[str]:
            async with connection.client.listen(resources_list_changed=True) as changes:
                put(notes, "third/SKILL.md", skill_md("third"))
                await anext(changes)
            return [entry["frontmatter"]["name"] for entry in await connection.all_skills()]

        if watches:
            assert asked(server.url, until_there) == ["notes", "other", "third"]
        else:
            put(notes, "third/SKILL.md", skill_md("third"))
            assert asked(server.url, everything)["skills"] == ["notes", "other"]


@posix
@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("ask", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_on_http_when_it_is_told_to(notes: Path, ask: signal.Signals) -> None:
    """Also while a client listens for changes."""

    async def whole() -> int:
        with serving(notes) as server:
            async with Client(server.url, cache=None) as client, client.listen(resources_list_changed=True):
                status, rest = await asyncio.to_thread(server.stop, ask)
            assert "Traceback" not in rest
            return status

    assert asyncio.run(asyncio.wait_for(whole(), SECONDS)) in {0, -ask, 128 + ask}


@posix
@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("ask", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_on_standard_input_when_it_is_told_to(notes: Path, ask: signal.Signals) -> None:
    """Also while it waits for a client that says nothing."""
    (stdin, write), (read, stdout) = os.pipe(), os.pipe()
    with os.fdopen(write, "w") as asked, os.fdopen(read) as answers, TemporaryFile() as stderr:
        fork_server = fork_server_for(Path(__file__).parent / "command_inside.py")
        process = fork_server.fork(["serve", str(notes)], {}, None, stdin=stdin, stdout=stdout, stderr=stderr)
        os.close(stdin)
        os.close(stdout)
        asked.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        asked.flush()
        assert answers.readline()
        assert process.end(ask) == -ask
        stderr.seek(0)
        assert stderr.read() == b""
