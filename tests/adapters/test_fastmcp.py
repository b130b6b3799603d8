"""Skills inside of a FastMCP server: real clients of the same package, with and without sessions."""

from __future__ import annotations

import asyncio
import base64
import runpy
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from tests.adapters.skill_library import PIXEL, write_library
from tests.page_snippets import ROOT, run_framework_page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

fastmcp = pytest.importorskip("fastmcp", reason="NOT TESTED: fastmcp is not installed; make test-adapters installs it")

from fastmcp.client.elicitation import ElicitResult

from prowess.adapters.fastmcp import Skills

COUNT = ("run_skill_script", {"name": "count-words", "script": "scripts/count.py", "args": ["a", "b"]})
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
"""The protocol since 2026-07-28, which has no sessions, and the one before it."""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return write_library(tmp_path / "skills")


def make_server(skills: Skills, **more: Any) -> Any:
    server = fastmcp.FastMCP("mine", instructions="Be kind.")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    return skills.mount(server, **more)


class Person:
    """A person who answers questions, and remembers them."""

    def __init__(self, *answers: str, meanwhile: Callable[[], Any] = lambda: None) -> None:
        self.answers = list(answers)
        self.questions: list[str] = []
        self.meanwhile = meanwhile

    async def __call__(self, message: str, *_: Any) -> Any:
        self.questions.append(message)
        self.meanwhile()
        answer = self.answers.pop(0)
        if answer in {"yes", "no"}:
            return ElicitResult(action="accept", content={"run": answer == "yes"})
        return ElicitResult(action=answer)


def talk(server: Any, work: Callable[[Any], Awaitable[Any]], mode: str = "auto", person: Any = None) -> Any:
    """Connect a client, and return what ``work`` makes of it."""

    async def run() -> Any:
        async with fastmcp.Client(server, mode=mode, elicitation_handler=person) as client:
            return await work(client)

    return asyncio.run(run())


def call_all(*calls: tuple[str, Any]) -> Callable[[Any], Awaitable[Any]]:
    async def work(client: Any) -> Any:
        return [await client.call_tool(*call, raise_on_error=False) for call in calls]

    return work


def get_text(result: Any) -> str:
    return str(result.content[0].text)


@MODES
def test_one_line_gives_an_agent_skills(library: Path, mode: str) -> None:
    async def work(client: Any) -> Any:
        calls = call_all(("load_skill", {"name": "greet"}), ("add", {"a": 1, "b": 2}))
        return client.instructions, await client.list_tools(), await calls(client)

    instructions, tools, (loaded, added) = talk(make_server(Skills(library)), work, mode)
    assert instructions.startswith("Be kind.\n\n")
    assert instructions.count("<available_skills>") == 1
    named = {tool.name: tool for tool in tools}
    assert set(named) == {"add", "load_skill", "unload_skill", "read_skill_file", "search_skills"}
    assert "<name>greet</name>" in named["load_skill"].description
    assert named["load_skill"].input_schema["required"] == ["name"]
    assert "Say hello as references/forms.md says." in get_text(loaded)
    assert str(library) not in get_text(loaded)
    assert get_text(added) == "3"


def test_each_conversation_has_its_own_session(library: Path) -> None:
    skills = Skills(library)
    server = make_server(skills)

    async def work() -> None:
        async with fastmcp.Client(server, mode="legacy") as one, fastmcp.Client(server, mode="legacy") as two:
            await one.call_tool("load_skill", {"name": "greet"})
            again = await one.call_tool("load_skill", {"name": "greet"})
            other = await two.call_tool("load_skill", {"name": "greet"})
            assert "it was active already" in get_text(again)
            assert "it was active already" not in get_text(other)

    asyncio.run(work())


def test_call_without_a_session_is_a_conversation_of_its_own(library: Path) -> None:
    skills = Skills(library)
    call = ("load_skill", {"name": "greet"})
    _, again = talk(make_server(skills), call_all(call, call))
    assert "it was active already" not in get_text(again)
    assert len(skills.conversations) == 0


def test_conversation_has_the_key_that_the_server_finds(library: Path) -> None:
    skills = Skills(library)
    talk(make_server(skills, find_key=lambda _: "ann"), call_all(("load_skill", {"name": "greet"})))
    assert skills.session("ann").active_skills == ("greet",)


@MODES
def test_errors_are_results(library: Path, mode: str) -> None:
    results = talk(
        make_server(Skills(library)),
        call_all(
            ("load_skill", {"name": "nobody"}),
            ("load_skill", {"wrong": 1}),
            ("read_skill_file", {"name": "greet", "path": "references/none.md"}),
        ),
        mode,
    )
    assert [result.is_error for result in results] == [True] * 3
    assert "nobody" in get_text(results[0])
    assert get_text(results[1]).startswith("load_skill: name is required.")


@MODES
def test_approval_shows_the_request_and_resuming_runs_it(library: Path, mode: str) -> None:
    person = Person("yes")
    (result,) = talk(make_server(Skills(library, scripts=True)), call_all(COUNT), mode, person)
    (question,) = person.questions
    assert "scripts/count.py a b" in question
    assert "2 words" in get_text(result)


@MODES
@pytest.mark.parametrize("answer", ["no", "decline", "cancel"])
def test_refused_call_does_not_run(library: Path, mode: str, answer: str) -> None:
    (result,) = talk(make_server(Skills(library, scripts=True)), call_all(COUNT), mode, Person(answer))
    assert result.is_error
    assert "2 words" not in get_text(result)


@MODES
def test_changed_files_are_asked_about_again(library: Path, mode: str) -> None:
    script = library / "count-words/scripts/count.py"
    person = Person("yes", "yes", meanwhile=lambda: script.write_text("print('other')\n"))
    (result,) = talk(make_server(Skills(library, scripts=True)), call_all(COUNT), mode, person)
    first, second = person.questions
    assert first != second
    assert "other" in get_text(result)


def test_client_that_cannot_ask_is_told_that_nothing_ran(library: Path) -> None:
    (result,) = talk(make_server(Skills(library, scripts=True)), call_all(COUNT))
    assert "2 words" not in get_text(result)


def test_pictures_are_content_parts(library: Path) -> None:
    call = ("read_skill_file", {"name": "picture", "path": "assets/pixel.png"})
    (result,) = talk(make_server(Skills(library)), call_all(call))
    assert base64.b64decode(result.content[1].data) == PIXEL


def test_reload_between_turns(library: Path) -> None:
    with prowess.live(library, every=0.02) as live:

        async def work(client: Any) -> Any:
            before = await client.list_tools()
            seen = live.catalog
            (library / "later").mkdir()
            (library / "later/SKILL.md").write_text("---\nname: later\ndescription: Comes later.\n---\nHi.\n")
            while "later" not in seen:
                seen = live.wait_for_change(seen)
            return before, await client.list_tools()

        lists = talk(make_server(Skills(live)), work, "legacy")
    described = [{tool.name: tool.description for tool in tools}["load_skill"] for tools in lists]
    assert ["<name>later</name>" in description for description in described] == [False, True]


def test_enforcing_is_refused_because_a_server_sees_no_other_tools(library: Path) -> None:
    with pytest.raises(prowess.SourceError, match="enforce is not possible here"):
        Skills(library, enforce=True)


def test_example_runs(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(library.parent)
    server = runpy.run_path(str(ROOT / "examples/frameworks/fastmcp.py"))["main"]()
    (result,) = talk(server, call_all(COUNT), person=Person("yes"))
    assert "2 words" in get_text(result)


def test_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run_framework_page("fastmcp", tmp_path, monkeypatch)
    (loaded,) = talk(names["server"], call_all(("load_skill", {"name": "csv-report"})))
    assert "csv-report" in get_text(loaded)
