"""The same toolset from asynchronous code, and selectors that must be awaited from either."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]


class Awaited:
    """A selector that answers after it was awaited, in whichever loop."""

    def __init__(self, *names: str, strict: bool = False) -> None:
        self.names = names
        self.strict = strict
        self.loops: list[asyncio.AbstractEventLoop] = []

    async def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Iterable[str]:  # noqa: ARG002 - protocol
        self.loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        if not self.names:
            raise RuntimeError("down")
        return self.names


def listing(toolset: prowess.Toolset, query: str) -> str:
    return toolset.prompt(query) + toolset.tools(query)[0].description


async def alisting(toolset: prowess.Toolset, query: str) -> str:
    return await toolset.aprompt(query) + (await toolset.atools(query))[0].description


@pytest.fixture
def two(put: Put) -> None:
    put("pdf", body="Fill it.\n", files={"a.md": "A file.\n"})
    put("csv", body="Profile it.\n")


@pytest.mark.usefixtures("two")
def test_a_prompt_awaits_the_selector_in_the_callers_loop(dialect: prowess.DialectName, talk: Talk) -> None:
    async def main() -> None:
        selector = Awaited("pdf")
        shown = await alisting(prowess.Toolset(talk(selector=selector), dialect), "query")
        assert "pdf" in shown
        assert "csv" not in shown
        assert set(selector.loops) == {asyncio.get_running_loop()}

    asyncio.run(main())


@pytest.mark.usefixtures("two")
def test_a_plain_call_asks_an_awaited_selector_too(dialect: prowess.DialectName, talk: Talk) -> None:
    """Where no loop runs, and where one is running."""
    toolset = prowess.Toolset(talk(selector=Awaited("pdf")), dialect)

    async def main() -> str:
        return listing(toolset, "query")

    for shown in (listing(toolset, "query"), asyncio.run(main())):
        assert "pdf" in shown
        assert "csv" not in shown


@pytest.mark.usefixtures("two")
def test_asynchronous_and_plain_answers_are_the_same(dialect: prowess.DialectName, talk: Talk) -> None:
    async def main() -> None:
        toolset = prowess.Toolset(talk(), dialect)
        assert await toolset.aprompt() == toolset.prompt()
        assert await toolset.atools() == toolset.tools()
        tool = toolset.tools()[0]
        for name in ("csv", "nope"):
            sent = {tool.parameters["required"][0]: name}
            toolset.call(tool.name, sent)
            assert await toolset.acall(tool.name, sent) == toolset.call(tool.name, sent)

    asyncio.run(main())


@pytest.mark.usefixtures("two")
def test_a_selector_that_fails_shows_everything(dialect: prowess.DialectName, talk: Talk) -> None:
    toolset = prowess.Toolset(talk(selector=Awaited()), dialect)
    shown = asyncio.run(alisting(toolset, "query"))
    assert "pdf" in shown
    assert "csv" in shown
    assert shown == listing(toolset, "query")


@pytest.mark.usefixtures("two")
def test_a_strict_selector_is_awaited_without_a_query(dialect: prowess.DialectName, talk: Talk) -> None:
    toolset = prowess.Toolset(talk(selector=Awaited("csv", strict=True)), dialect)
    shown = asyncio.run(alisting(toolset, ""))
    assert "csv" in shown
    assert "pdf" not in shown
    assert shown == listing(toolset, "")


@pytest.mark.usefixtures("two")
def test_a_call_within_a_loop_is_answered_with_an_awaited_strict_selector(
    dialect: prowess.DialectName, talk: Talk
) -> None:
    """An error that lists names asks it, from a thread as from the loop itself."""
    toolset = prowess.Toolset(talk(selector=Awaited("csv", strict=True)), dialect)
    key = prowess.Toolset(talk(), dialect).tools()[0].parameters["required"][0]

    async def main() -> None:
        tool = (await toolset.atools())[0].name
        for name in ("csv", "nope"):
            plain, awaited = toolset.call(tool, {key: name}), await toolset.acall(tool, {key: name})
            assert plain.is_error == awaited.is_error == (name == "nope")

    asyncio.run(main())


@pytest.mark.usefixtures("two")
def test_the_ambient_filter_goes_with_an_asynchronous_call(dialect: prowess.DialectName, talk: Talk) -> None:
    """Although files are read in a thread; tasks side by side keep their own."""
    toolset = prowess.Toolset(talk(), dialect)
    tool = toolset.tools()[0]
    key = tool.parameters["required"][0]

    async def both(pattern: str) -> list[bool]:
        with prowess.skill_filter(pattern):
            return [(await toolset.acall(tool.name, {key: name})).is_error for name in ("csv", "pdf")]

    async def main() -> list[list[bool]]:
        return list(await asyncio.gather(both("skills/csv"), both("skills/pdf"), both("none"), both("")))

    assert asyncio.run(main()) == [[False, True], [True, False], [True, True], [False, False]]


@pytest.mark.usefixtures("two")
def test_many_calls_run_side_by_side(talk: Talk) -> None:
    toolset = prowess.Toolset(talk())

    async def main() -> list[prowess.ToolResult]:
        calls = [toolset.acall("load_skill", {"name": name}) for name in ("pdf", "csv", "nope") * 20]
        return await asyncio.gather(*calls)

    results = asyncio.run(main())
    assert [result.is_error for result in results] == [False, False, True] * 20


@pytest.mark.usefixtures("two")
def test_an_asynchronous_call_never_raises(dialect: prowess.DialectName, talk: Talk) -> None:
    async def main() -> None:
        toolset = prowess.Toolset(talk(), dialect)
        for tool in (*(tool.name for tool in toolset.tools()), "nope"):
            for sent in ("{", b"\xff", None, {"name": 7}, "[" * 100_000):
                assert (await toolset.acall(tool, sent)).is_error

    asyncio.run(main())
