"""The host hears of its own bugs, with a traceback; the model hears nothing of what they say."""

from __future__ import annotations

import asyncio
import logging
from collections import UserDict
from typing import TYPE_CHECKING, cast

import pytest

import prowess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    Put = Callable[..., Path]
    Talk = Callable[..., prowess.Session]

SECRET = "password=hunter2"  # noqa: S105 - what must not reach a model


def fail(*_: object) -> bool:
    raise RuntimeError(SECRET)


async def fail_later(*_: object) -> bool:
    await asyncio.sleep(0)
    raise RuntimeError(SECRET)


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The messages to the logger, each of which must have a traceback that leads to the host's line."""
    records = [record for record in caplog.records if record.name == "prowess"]
    for record in records:
        assert record.exc_info is not None
        assert record.levelno == logging.ERROR
        assert SECRET in (caplog.handler.format(record))
    return [record.getMessage() for record in records]


def told(events: list[prowess.Event], kind: str = "host-failed") -> list[tuple[str, object, object]]:
    return [(event.skill, event.detail.get("where"), event.detail["error"]) for event in events if event.kind == kind]


def each_way(toolset: prowess.Toolset, tool: str, arguments: dict[str, str]) -> list[prowess.ToolResult]:
    return [toolset.call(tool, arguments), asyncio.run(toolset.acall(tool, arguments))]


@pytest.mark.parametrize("ask", [fail, fail_later])
def test_an_ask_that_raises(  # noqa: PLR0917 - fixtures
    ask: Callable[..., bool],
    put: Put,
    talk: Talk,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    events: list[prowess.Event],
) -> None:
    put("act", body="!`touch ran.txt`\n")
    session = talk(trust=prowess.Trust(tmp_path / "t.json", ask=ask))
    for result in each_way(prowess.Toolset(session), "load_skill", {"name": "act"}):
        assert (result.is_error, SECRET in result.content, SECRET in str(result.data)) == (True, False, False)
        assert result.data["reason"] == "host-failed"
        assert result.content == "it failed inside the host. Do without it; the log of prowess has the traceback."
    assert logged(caplog) == ["the host's ask raised RuntimeError"] * 2
    assert told(events) == [("act", "ask", "RuntimeError")] * 2
    assert not (tmp_path / "ran.txt").exists()


@pytest.mark.parametrize("answer", ["yes", 1, None, "Always"])
def test_an_ask_that_answers_something_else_is_a_no_and_logged(
    answer: object, put: Put, talk: Talk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put("act", body="!`touch ran.txt`\n")
    ask = cast("Callable[..., bool]", lambda _: answer)
    prowess.Toolset(talk(trust=prowess.Trust(tmp_path / "t.json", ask=ask))).call("load_skill", {"name": "act"})
    said = f"the host's ask answered {answer!r}, which counts as no: it must answer True, 'always' or False"
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("prowess", said)]
    assert not (tmp_path / "ran.txt").exists()
    caplog.clear()
    no = prowess.Trust(tmp_path / "t.json", ask=lambda _: False)
    prowess.Toolset(talk(trust=no)).call("load_skill", {"name": "act"})
    assert caplog.records == []


@pytest.mark.parametrize("fork", [fail, fail_later])
def test_a_fork_that_raises(
    fork: Callable[..., str], put: Put, talk: Talk, caplog: pytest.LogCaptureFixture, events: list[prowess.Event]
) -> None:
    put("forked", fields="context: fork\n")
    for result in each_way(prowess.Toolset(talk(), fork=fork), "run_skill", {"name": "forked", "task": "x"}):
        assert (result.is_error, result.data["reason"], SECRET in result.content) == (True, "fork-failed", False)
        assert result.content.endswith("the host could not run it. Do without a sub-agent, or try again.")
    assert logged(caplog) == ["the host's fork raised RuntimeError"] * 2
    assert told(events) == [("forked", "fork", "RuntimeError")] * 2


class Broken:
    """A selector with a bug."""

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Iterable[str]:  # noqa: ARG002 - protocol
        fail()
        return ()


def test_a_selector_that_raises(
    put: Put, talk: Talk, caplog: pytest.LogCaptureFixture, events: list[prowess.Event]
) -> None:
    put("plain")
    toolset = prowess.Toolset(talk(selector=Broken()))
    for prompt in (toolset.prompt("query"), asyncio.run(toolset.aprompt("query"))):
        assert ("plain" in prompt, SECRET in prompt) == (True, False)
    assert set(logged(caplog)) == {"the host's selector raised RuntimeError"}
    assert told(events, "selector-failed")


@pytest.mark.parametrize("answer", ["plain", b"plain", [3]])
def test_a_selector_that_answers_no_names(
    answer: object, put: Put, talk: Talk, caplog: pytest.LogCaptureFixture, events: list[prowess.Event]
) -> None:
    """A text would count letter by letter, and pick nothing: everything is shown, and the host is told why."""

    class Wrong:
        def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Iterable[str]:  # noqa: ARG002 - protocol
            return cast("Iterable[str]", answer)

    put("plain")
    put("other")
    prompt = prowess.Toolset(talk(selector=Wrong())).prompt("query")
    assert ("plain" in prompt, "other" in prompt) == (True, True)
    assert {record.getMessage() for record in caplog.records} == {"the host's selector raised SourceError"}
    [error] = [event.detail["error"] for event in events if event.kind == "selector-failed"]
    assert "what select() gives" in str(error)


def test_a_listener_that_raises_hears_of_it_once(put: Put, talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    put("plain")
    heard: list[tuple[str, object]] = []

    def listen(event: prowess.Event) -> None:
        heard.append((event.kind, event.detail.get("where")))
        fail()

    result = prowess.Toolset(talk(on_event=listen)).call("load_skill", {"name": "plain"})
    assert not result.is_error
    assert heard == [("activated", None), ("host-failed", "on_event")]
    assert logged(caplog) == ["the host's on_event raised RuntimeError"] * 2


def test_whatever_else_raises_inside_a_call_is_logged_and_kept_from_the_model(
    put: Put, talk: Talk, caplog: pytest.LogCaptureFixture, events: list[prowess.Event], dialect: prowess.DialectName
) -> None:
    """A mapping of the host's that fails when it is read."""

    class Arguments(UserDict[str, str]):
        def __iter__(self) -> Iterator[str]:
            fail()
            return iter(())

    put("plain")
    toolset = prowess.Toolset(talk(), dialect)
    result = toolset.call(toolset.tools()[0].name, Arguments())
    assert (result.is_error, SECRET in result.content, SECRET in str(result.data)) == (True, False, False)
    assert len(logged(caplog)) == len(told(events)) == 1
