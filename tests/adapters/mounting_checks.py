"""What skills inside of an MCP server must do, checked with real clients, with and without sessions.

Each function is one check. The tests of a framework for servers call it with their framework.
"""

from __future__ import annotations

import asyncio
import base64
import runpy
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from tests.adapters.approval_orders import UNBOXED, Door, check_orders
from tests.adapters.skill_library import LISTED, PIXEL, RIGHTS, RUN_COUNT, add_fresh_skill, check_listings
from tests.page_snippets import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from mcp_types import ElicitResult

    Call = tuple[str, dict[str, Any]]

GREET = ("load_skill", {"name": "greet"})
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
"""The protocol since 2026-07-28, which has no sessions, and the one before it."""


class Person:
    """A person who answers the questions of a server, and remembers them."""

    def __init__(self, *answers: str, meanwhile: Callable[[], Any] = lambda: None) -> None:
        self.answers = list(answers)
        self.questions: list[str] = []
        self.meanwhile = meanwhile

    def answer(self, question: str, result: type[ElicitResult]) -> ElicitResult:
        """Return the next answer as the result class of a framework."""
        self.questions.append(question)
        self.meanwhile()
        answer: Any = self.answers.pop(0)
        if answer in {"yes", "no"}:
            return result(action="accept", content={"run": answer == "yes"})
        return result(action=answer)


@dataclass(frozen=True)
class ServerFramework:
    """A framework for MCP servers: the adapter's class, an empty server, and how its client is used."""

    name: str
    """The name of its example and of its page in the documentation."""
    skills: Any
    make_server: Callable[[], Any]
    """Returns a server with the instructions ``Be kind.`` and the tool ``add``."""
    open_client: Callable[[Any, str, Person | None], AbstractAsyncContextManager[Any]]
    """Takes the server, the mode, and the person who answers; without a person, the client cannot ask anybody."""
    call: Callable[[Any, str, dict[str, Any]], Awaitable[Any]]
    """Calls a tool with a client. An error is a result."""
    list_tools: Callable[[Any], Awaitable[Sequence[Any]]]

    def mount(self, *sources: Any, find_key: Any = None, **options: Any) -> Any:
        """Return a server with the skills of ``sources``."""
        return self.skills(*sources, **options).mount(self.make_server(), find_key=find_key)

    def talk(
        self, server: Any, work: Callable[[Any], Awaitable[Any]], mode: str = "auto", person: Person | None = None
    ) -> Any:
        """Connect a client, and return what ``work`` makes of it."""

        async def run() -> Any:
            async with self.open_client(server, mode, person) as client:
                return await work(client)

        return asyncio.run(run())

    def call_all(self, server: Any, *calls: Call, mode: str = "auto", person: Person | None = None) -> list[Any]:
        """Return the results of calls that one client makes, one after the other."""

        async def work(client: Any) -> list[Any]:
            return [await self.call(client, *call) for call in calls]

        results: list[Any] = self.talk(server, work, mode, person)
        return results


def get_text(result: Any) -> str:
    return str(result.content[0].text)


# -- the listing and the calls -----------------------------------------------------------------------------------------


def check_one_line(framework: ServerFramework, library: Path, mode: str) -> None:
    async def work(client: Any) -> Any:
        calls = (
            GREET,
            ("read_skill_file", {"name": "greet", "path": "references/forms.md"}),
            ("add", {"a": 1, "b": 2}),
        )
        results = [await framework.call(client, *call) for call in calls]
        return client.instructions, await framework.list_tools(client), results

    instructions, tools, (loaded, read, added) = framework.talk(framework.mount(library), work, mode)
    assert instructions.startswith("Be kind.\n\n")
    assert instructions.count(LISTED) == 1
    named = {tool.name: tool for tool in tools}
    assert set(named) == {"add", "load_skill", "unload_skill", "read_skill_file", "search_skills"}
    assert "<name>greet</name>" in named["load_skill"].description
    assert named["load_skill"].input_schema["required"] == ["name"]
    assert "enum" not in named["load_skill"].input_schema["properties"]["name"]
    assert "Say hello as references/forms.md says." in get_text(loaded)
    assert "Good morning before noon." in get_text(read)
    assert get_text(added) == "3"


def check_hidden_paths(framework: ServerFramework, library: Path) -> None:
    person = Person("yes")
    server = framework.mount(library, scripts=True)
    results = framework.call_all(server, ("load_skill", {"name": "count-words"}), RUN_COUNT, person=person)
    assert str(library) not in str(results)
    assert str(library) not in str(person.questions)


def check_errors(framework: ServerFramework, library: Path, mode: str) -> None:
    results = framework.call_all(
        framework.mount(library),
        ("load_skill", {"name": "nobody"}),
        ("load_skill", {"wrong": 1}),
        ("read_skill_file", {"name": "greet", "path": "references/none.md"}),
        ("read_skill_file", {"name": "greet", "path": "../../secret"}),
        mode=mode,
    )
    assert [result.is_error for result in results] == [True] * 4
    assert "nobody" in get_text(results[0])
    assert get_text(results[1]).startswith("load_skill: name is required.")


def check_pictures(framework: ServerFramework, library: Path) -> None:
    call = ("read_skill_file", {"name": "picture", "path": "assets/pixel.png"})
    (result,) = framework.call_all(framework.mount(library), call)
    assert base64.b64decode(result.content[1].data) == PIXEL
    assert result.content[1].mime_type == "image/png"


def check_forks(framework: ServerFramework, library: Path) -> None:
    (result,) = framework.call_all(framework.mount(library), ("load_skill", {"name": "review"}))
    assert "Review the text." in get_text(result)


def check_reload(framework: ServerFramework, library: Path) -> None:
    with prowess.live(library, every=0.02) as live:

        async def work(client: Any) -> Any:
            before = await framework.list_tools(client)
            add_fresh_skill(library, live)
            after = await framework.list_tools(client)
            return before, after, await framework.call(client, "load_skill", {"name": "fresh"})

        *lists, loaded = framework.talk(framework.mount(live), work, "legacy")
    described = [{tool.name: tool.description for tool in tools}["load_skill"] for tools in lists]
    assert ["<name>fresh</name>" in description for description in described] == [False, True]
    assert "Be new." in get_text(loaded)


def check_enforcing(framework: ServerFramework, library: Path) -> None:
    with pytest.raises(prowess.SourceError, match="enforce is not possible here"):
        framework.skills(library, enforce=True)


# -- conversations -----------------------------------------------------------------------------------------------------


def check_own_sessions(framework: ServerFramework, library: Path) -> Any:
    """Return the skills, after all clients are gone."""
    skills = framework.skills(library)
    server = skills.mount(framework.make_server())

    async def work(one: Any) -> None:
        async with framework.open_client(server, "legacy", None) as two:
            await framework.call(one, *GREET)
            again = await framework.call(one, *GREET)
            other = await framework.call(two, *GREET)
            assert "it was active already" in get_text(again)
            assert "it was active already" not in get_text(other)
            assert len(skills.conversations) == 2

    framework.talk(server, work, "legacy")
    return skills


def check_no_session(framework: ServerFramework, library: Path) -> None:
    skills = framework.skills(library)
    _, again = framework.call_all(skills.mount(framework.make_server()), GREET, GREET)
    assert "it was active already" not in get_text(again)
    assert len(skills.conversations) == 0


def check_found_key(framework: ServerFramework, library: Path, context: type) -> None:
    skills = framework.skills(library)
    contexts: list[Any] = []

    def find_key(ctx: Any) -> str:
        contexts.append(ctx)
        return "ann"

    framework.call_all(skills.mount(framework.make_server(), find_key=find_key), GREET)
    assert [isinstance(ctx, context) for ctx in contexts] == [True]
    assert skills.session("ann").active_skills == ("greet",)


# -- what a person allows ----------------------------------------------------------------------------------------------


def check_approval(framework: ServerFramework, library: Path, mode: str) -> None:
    person = Person("yes")
    (result,) = framework.call_all(framework.mount(library, scripts=True), RUN_COUNT, mode=mode, person=person)
    (question,) = person.questions
    assert "scripts/count.py a b" in question
    assert "digest: " in question
    assert "2 words" in get_text(result)


def check_refusal(framework: ServerFramework, library: Path, mode: str, answer: str) -> None:
    (library / "count-words/scripts/count.py").write_text("raise SystemExit('it ran')\n")
    (result,) = framework.call_all(framework.mount(library, scripts=True), RUN_COUNT, mode=mode, person=Person(answer))
    assert result.is_error
    assert "it ran" not in get_text(result)


def check_changed_files(framework: ServerFramework, library: Path, mode: str) -> None:
    script = library / "count-words/scripts/count.py"
    person = Person("yes", "yes", meanwhile=lambda: script.write_text("print('other')\n"))
    (result,) = framework.call_all(framework.mount(library, scripts=True), RUN_COUNT, mode=mode, person=person)
    first, second = person.questions
    assert first != second
    assert "other" in get_text(result)


def check_second_question(framework: ServerFramework, library: Path, mode: str) -> None:
    person = Person("yes", "yes")
    server = framework.mount(library, scripts=True)
    framework.call_all(server, RUN_COUNT, mode=mode, person=person)
    framework.call_all(server, RUN_COUNT, mode=mode, person=person)
    assert len(person.questions) == 2


def check_cancelled_approval(framework: ServerFramework, library: Path, mode: str) -> None:
    """A yes whose call was cancelled: the next equal call is asked about, and a no to that counts."""
    door, person = Door(), Person("yes", "no")

    async def work(client: Any) -> Any:
        async with door.put_into(library):
            await door.cancel_behind(asyncio.ensure_future(framework.call(client, *RUN_COUNT)))
            return [await framework.call(client, *RUN_COUNT) for _ in range(2 if mode == "legacy" else 1)]

    for result in framework.talk(framework.mount(library, scripts=UNBOXED), work, mode, person):
        assert result.is_error
        assert "2 words" not in get_text(result)
    assert (door.knocks, len(person.questions)) == (1, 2)


class OrdersHost:
    """A client that keeps the question and the state which the server gave it."""

    def __init__(self, client: Any) -> None:
        self._client, self.state = client, None
        self._types = import_module("mcp_types")

    def restart(self) -> None:
        """Do nothing: the conversations of users are in the memory of the server."""

    async def ask(self) -> bool:
        return await self._call()

    async def decide(self, *, yes: bool) -> bool:
        answers = {"run": self._types.ElicitResult(action="accept", content={"run": yes})}
        return await self._call(input_responses=answers, request_state=self.state)

    async def retry(self) -> bool:
        return await self._call()

    async def _call(self, **more: Any) -> bool:
        result = await self._client.session.call_tool(*RUN_COUNT, allow_input_required=True, **more)
        is_asked = isinstance(result, self._types.InputRequiredResult)
        self.state = result.request_state if is_asked else self.state
        return is_asked


def check_approval_orders(framework: ServerFramework, library: Path) -> None:
    @asynccontextmanager
    async def open_host() -> AsyncIterator[OrdersHost]:
        server = framework.mount(library, scripts=UNBOXED, find_key=lambda _: "ann")
        async with framework.open_client(server, "auto", Person()) as client:
            yield OrdersHost(client)

    check_orders(library, open_host)


def check_answer_about_nothing(framework: ServerFramework, library: Path, *, has_key: bool) -> None:
    """An answer to no question, and one that was used: an error, and nothing runs."""

    async def work(client: Any) -> list[Any]:
        types = import_module("mcp_types")

        async def call(state: str | None, *, yes: bool) -> Any:
            answers = {"run": types.ElicitResult(action="accept", content={"run": yes})}
            more = {"input_responses": answers, "request_state": state, "allow_input_required": True}
            return await client.session.call_tool(*RUN_COUNT, **more)

        host = OrdersHost(client)
        told = [await call(None, yes=yes) for yes in (True, False)]
        assert await host.ask()
        assert "2 words" in get_text(await call(host.state, yes=True))
        return [*told, await call(host.state, yes=True)]

    server = framework.mount(library, scripts=True, **({"find_key": lambda _: "ann"} if has_key else {}))
    for result in framework.talk(server, work, person=Person()):
        assert result.is_error
        assert "nobody waits for a decision" in get_text(result)
        assert "make the call again" in get_text(result).lower()


def check_nobody_to_ask(framework: ServerFramework, library: Path, mode: str) -> None:
    (result,) = framework.call_all(framework.mount(library, scripts=True), RUN_COUNT, mode=mode)
    assert "2 words" not in get_text(result)
    assert "count-words" in get_text(result)


# -- the documentation -------------------------------------------------------------------------------------------------


def check_example(framework: ServerFramework, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(library.parent)
    server = runpy.run_path(str(ROOT / f"examples/frameworks/{framework.name}.py"))["main"]()
    (result,) = framework.call_all(server, RUN_COUNT, person=Person("yes"))
    assert "2 words" in get_text(result)


def check_server_of_page(framework: ServerFramework, server: Any) -> None:
    """Check the server that the snippets of the framework's page make."""
    (loaded,) = framework.call_all(server, ("load_skill", {"name": "csv-report"}))
    assert "csv-report" in get_text(loaded)


# -- scopes ------------------------------------------------------------------------------------------------------------


def check_scopes(framework: ServerFramework, library: Path, mode: str) -> None:
    user = ["ann"]

    def scope(context: prowess.ScopeContext) -> prowess.Scope:
        assert context.framework is not None
        return prowess.Scope(allowed=RIGHTS[context.key])

    server = framework.mount(library, find_key=lambda _: user[0], scope=scope)

    async def work(client: Any) -> tuple[str, str, str, set[str]]:
        tools = {tool.name: tool.description for tool in await framework.list_tools(client)}
        picture = get_text(await framework.call(client, "load_skill", {"name": "picture"}))
        return client.instructions, tools["load_skill"], picture, set(tools)

    seen = {}
    for name in RIGHTS:
        user[0] = name
        seen[name] = framework.talk(server, work, mode)
    for place in range(2):
        check_listings(seen["ann"][place], seen["bob"][place])
    assert "unknown skill 'picture'" in seen["ann"][2]
    assert "Look at assets/pixel.png." in seen["bob"][2]
    assert "run_skill_script" not in seen["ann"][3]


def check_two_skills(framework: ServerFramework, library: Path) -> None:
    server = framework.mount(library)
    with pytest.raises(prowess.SourceError, match="an agent has one Skills"):
        framework.skills(library).mount(server)
