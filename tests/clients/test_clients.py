"""Real clients with a scripted model on loopback: the model learns of every skill, loads one, and learns of changes.

Each is installed by ``make test-clients`` and started with the configuration that ``prowess serve --config`` prints.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mcp import Client as McpClient

import prowess
from tests.clients.conversations import converse, resume_words
from tests.clients.programs import (
    CLIENTS,
    ROOT,
    NotInstalledError,
    Start,
    ask_client,
    install_client,
    prepare_client,
    run_client,
)
from tests.fake_models import ModelRequest, Text, ToolCall, provide
from tests.sandbox_support import NOT_TESTED

if TYPE_CHECKING:
    from tests.fake_models import Move

pytestmark = pytest.mark.clients

SHOW_CHANGES = {"Gemini CLI", "openai-agents", "pydantic-ai"}
"""The clients that show a changed listing within one answer; the others keep to the tools that it began with, and
their models learn of new skills by what a tool answers."""
SHOW_CHANGES_LATER = {"Gemini CLI"}
"""Of the clients for a terminal, those that show a changed listing with a later message to the same process."""
SHOW_CHANGES_RESUMED = {"Codex", "Gemini CLI"}
"""Of the clients for a terminal, those that show a changed listing when a new process resumes the conversation."""
FOR_TERMINALS = ("Claude Code", "Claude Code, tools deferred", "Codex", "Gemini CLI")
SHOWN = {
    "Claude Code": {"instructions", "tools"},
    "Claude Code, tools deferred": {"instructions"},
    "Codex": {"instructions", "tools"},
    "Gemini CLI": {"instructions", "tools"},
    "openai-agents": {"tools"},
    "pydantic-ai": {"tools"},
}
"""Where a client's first request holds the whole listing, however long it may be: what docs/how-to/mcp.md says too."""
MOST_TURNS = 45
"""How many turns a client may take until its model sees a change: it refreshes its list while the model goes on."""
MOST_MESSAGES = 60
"""How many messages a client gets until its model sees a change, each some tenths of a second after the other: the
first ones are answered while the server still loads the SDK, and it tells of a change only then."""
LONG_LISTING = 60
LONG_TEXT = 3_000
"""More skills than are listed whole, and fewer characters than a listing of them has."""
NEW = "A skill that came while the conversation ran."


@pytest.fixture(params=list(CLIENTS))
def client(request: pytest.FixtureRequest) -> str:
    """The name of a client; all of them in turn, where a test names none."""
    return str(request.param)


@cache
def find_command(name: str) -> list[str] | NotInstalledError:
    """The command that starts a client, or why there is none: asked once for all tests."""
    try:
        return install_client(CLIENTS[name])
    except NotInstalledError as error:
        return error


@pytest.fixture
def command(client: str) -> list[str]:
    """The command that starts the client."""
    words = find_command(client)
    if isinstance(words, NotInstalledError):
        pytest.skip(f"{NOT_TESTED}{client}, which cannot be installed or started here ({words})")
    return words


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """The example skills, to be changed."""
    return Path(shutil.copytree(ROOT / "examples" / "skills", tmp_path / "library"))


def call_load_skill(request: ModelRequest, name: str, **more: str) -> ToolCall:
    """The move of a model that wants a skill; where the client defers tools, it has to look for the tool first."""
    tool = request.tool_named("load_skill")
    if tool is not None:
        return ToolCall(tool, {"name": name, **more})
    deferred = re.findall(r"^mcp__\w+__load_skill$", request.text, re.MULTILINE)
    if any(deferred[0] in text and "load_skill" in text for text in request.results):
        return ToolCall(deferred[0], {"name": name, **more})
    return ToolCall("ToolSearch", {"query": f"select:{deferred[0]}"})


def is_listed(request: ModelRequest) -> bool:
    """Whether the listing in the description of a tool holds the new skill."""
    return any(NEW in text for text in request.tools.values())


def squeeze(text: str) -> str:
    """``text`` with every run of white space as one space, and three dots as Claude Code writes them."""
    return " ".join(text.replace("…", "...").split())


def test_the_first_request_to_the_model_holds_every_name_and_description(
    client: str, command: list[str], library: Path, tmp_path: Path
) -> None:
    with provide(lambda _: Text("Done."), has_errands=True) as provider:
        ask_client(CLIENTS[client], command, tmp_path / "home", library, provider.url)
    seen = squeeze(provider.requests[0].text)
    skills = prowess.scan(library)
    assert len(skills) == len(list(library.glob("*/SKILL.md")))
    missing = [skill.name for skill in skills if skill.name not in seen or squeeze(skill.description) not in seen]
    assert missing == []


async def served_listings(library: Path) -> dict[str, str]:
    """The texts with the listing that a server of the library gives: its instructions, and what load_skill says."""
    async with McpClient(prowess.mcp.Server(library, notice=None).lowlevel) as client:
        tools = {tool.name: tool.description or "" for tool in (await client.list_tools()).tools}
        return {"instructions": client.instructions or "", "tools": tools["load_skill"]}


def test_the_longest_listing_is_shown_whole(client: str, command: list[str], tmp_path: Path) -> None:
    library = tmp_path / "library"
    for number in range(LONG_LISTING):
        description = f"Does a thing of kind {number} to documents. Use when a document needs it, or may need it soon."
        prowess.create_skill(f"skill-{number:02}", library, description=description)
    listings = asyncio.run(served_listings(library))
    assert all(len(text) > LONG_TEXT for text in listings.values())
    with provide(lambda _: Text("Done."), has_errands=True) as provider:
        ask_client(CLIENTS[client], command, tmp_path / "home", library, provider.url)
    seen = squeeze(provider.requests[0].text)
    assert {place for place, text in listings.items() if squeeze(text) in seen} == SHOWN[client]


def test_a_skill_that_the_model_loads_is_in_its_next_request(
    client: str, command: list[str], library: Path, tmp_path: Path
) -> None:
    wanted = prowess.scan(library)["csv-report"].load().instructions

    def script(request: ModelRequest) -> Move:
        is_loaded = any(squeeze(wanted)[:200] in squeeze(text) for text in request.results)
        return Text("Done.") if is_loaded or len(request.results) > 1 else call_load_skill(request, "csv-report")

    with provide(script, has_errands=True) as provider:
        ask_client(CLIENTS[client], command, tmp_path / "home", library, provider.url)
    assert squeeze(wanted)[:200] in squeeze(provider.requests[-1].results[-1])


def test_a_skill_that_comes_while_the_conversation_runs_reaches_the_model(
    client: str, command: list[str], library: Path, tmp_path: Path
) -> None:
    turns = 0

    def script(request: ModelRequest) -> Move:
        nonlocal turns
        turns += 1
        if turns == 1:
            prowess.create_skill("newcomer", library, description=NEW)
        is_enough = is_listed(request) if client in SHOW_CHANGES else NEW in request.text
        if is_enough or turns > MOST_TURNS:
            return Text("Done.")
        # No two calls are alike: Gemini CLI ends a conversation that seems to go round in circles.
        return call_load_skill(request, "csv-report", arguments=f"turn {turns}")

    with provide(script, has_errands=True) as provider:
        ask_client(CLIENTS[client], command, tmp_path / "home", library, provider.url)
    first, last = provider.requests[0], provider.requests[-1]
    assert NEW not in first.text
    assert NEW in last.text
    assert is_listed(last) == (client in SHOW_CHANGES)


def test_a_skill_that_came_while_the_conversation_ran_can_be_loaded(
    client: str, command: list[str], library: Path, tmp_path: Path
) -> None:
    """A client that keeps to the tools that it knows must not refuse the name, as one does that checks an enum."""

    def script(request: ModelRequest) -> Move:
        if not (library / "newcomer").exists():
            prowess.create_skill("newcomer", library, description=NEW)
        is_loaded = any('<skill_content name="newcomer">' in text for text in request.results)
        return Text("Done.") if is_loaded or len(request.results) > 2 else call_load_skill(request, "newcomer")

    with provide(script, has_errands=True) as provider:
        ask_client(CLIENTS[client], command, tmp_path / "home", library, provider.url)
    assert '<skill_content name="newcomer">' in provider.requests[-1].results[-1]


@pytest.mark.parametrize("client", FOR_TERMINALS, indirect=True)
def test_what_a_later_message_of_the_same_conversation_shows_of_a_new_skill(
    client: str, command: list[str], library: Path, tmp_path: Path
) -> None:
    """Claude Code asks for the list again and shows the one that it began with; Codex never asks again."""
    home = tmp_path / "home"
    with provide(lambda _: Text("Done."), has_errands=True) as provider:
        start = prepare_client(CLIENTS[client], home, library, provider.url)
        with converse(CLIENTS[client].configuration, command, home, start) as say:
            say("Begin.")
            prowess.create_skill("newcomer", library, description=NEW)
            for number in range(MOST_MESSAGES):
                say(f"Go on, {number}.")
                if NEW in provider.requests[-1].text:
                    break
    assert NEW not in provider.requests[0].text
    assert (NEW in provider.requests[-1].text) == (client in SHOW_CHANGES_LATER)


@pytest.mark.parametrize("client", FOR_TERMINALS, indirect=True)
def test_what_a_resumed_conversation_shows_of_a_new_skill(
    client: str, command: list[str], library: Path, tmp_path: Path
) -> None:
    """Claude Code keeps what the model was shown at first with the conversation; a new conversation shows what is."""
    home = tmp_path / "home"
    with provide(lambda _: Text("Done."), has_errands=True) as provider:
        start = prepare_client(CLIENTS[client], home, library, provider.url)
        run_client(command, home, start)
        prowess.create_skill("newcomer", library, description=NEW)
        resumed = Start(resume_words(CLIENTS[client].configuration, start), start.environment)
        run_client(command, home, resumed)
        run_client(command, home, start)
    first, again, anew = provider.requests
    assert NEW not in first.text
    assert (NEW in again.text) == (client in SHOW_CHANGES_RESUMED)
    assert NEW in anew.text


@pytest.mark.parametrize("client", ["Claude Code"], indirect=True)
def test_a_resumed_conversation_shows_a_new_skill_where_its_client_keeps_no_snapshot(
    command: list[str], client: str, library: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with provide(lambda _: Text("Done."), has_errands=True) as provider:
        start = prepare_client(CLIENTS[client], home, library, provider.url)
        start.arguments.extend(("--system-prompt-snapshot", "off"))
        run_client(command, home, start)
        prowess.create_skill("newcomer", library, description=NEW)
        run_client(command, home, Start([*start.arguments, "--continue"], start.environment))
    first, again = provider.requests
    assert (NEW in first.text, NEW in again.text) == (False, True)
