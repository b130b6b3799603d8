"""No conversation waits for another's script: places for reads, scripts and forks, and an end to the queue."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    Put = Callable[..., Path]
    Talk = Callable[..., prowess.Session]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs named pipes of a file system")
WAITS = "import sys\nwith open(sys.argv[1]) as pipe:\n    print('got', pipe.read())\n"
"""A script that ends when the test writes into its pipe, not before."""


class Gate:
    """A pipe that a script waits for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)

    async def open(self, text: str = "it") -> None:
        """Wait until the script reads, and let it end."""
        await asyncio.get_running_loop().run_in_executor(None, self.path.write_text, text)


@pytest.fixture
def gate(tmp_path: Path) -> Callable[[str], Gate]:
    return lambda name: Gate(tmp_path / name)


@pytest.fixture
def toolset(put: Put, talk: Talk, tmp_path: Path) -> Callable[[prowess.Limits], prowess.Toolset]:
    """A conversation of its own with a granted skill whose script waits."""
    put("act", body="Do it.\n", files={"scripts/wait.py": WAITS})
    put("told", body="Now: !`cat told.pipe`\n")

    def begin(limits: prowess.Limits) -> prowess.Toolset:
        trust = prowess.Trust(tmp_path / "trust.json")
        session = talk(trust=trust, limits=limits)
        for skill in session.catalog:
            trust.grant(skill)
        return prowess.Toolset(session, scripts=prowess.Scripts(sandbox="none", limits=limits))

    return begin


def wait_for(gate: Gate) -> dict[str, object]:
    return {"name": "act", "script": "scripts/wait.py", "args": [str(gate.path)]}


def test_reading_does_not_wait_for_the_scripts_of_others(
    toolset: Callable[[prowess.Limits], prowess.Toolset], gate: Callable[[str], Gate]
) -> None:
    """As many scripts as may run, more that wait for a place, and one place for reads."""
    limits = prowess.Limits(max_parallel_reads=1, max_parallel_scripts=2, max_waiting_scripts=5)
    gates = [gate(f"pipe-{number}") for number in range(4)]

    async def main() -> None:
        running = [asyncio.ensure_future(toolset(limits).acall("run_skill_script", wait_for(one))) for one in gates]
        other = toolset(limits)
        assert "Do it." in (await other.acall("load_skill", {"name": "act"})).content
        assert "act" in await other.aprompt()
        assert "load_skill" in [tool.name for tool in await other.atools()]
        assert not any(task.done() for task in running)
        await asyncio.gather(*(one.open() for one in gates))
        assert [result.data["stdout"] for result in await asyncio.gather(*running)] == ["got it\n"] * 4

    asyncio.run(main())


def test_reading_does_not_wait_for_commands_in_the_instructions_of_others(
    toolset: Callable[[prowess.Limits], prowess.Toolset], gate: Callable[[str], Gate]
) -> None:
    limits = prowess.Limits(max_parallel_reads=1, max_parallel_scripts=1)
    pipe = gate("told.pipe")

    async def main() -> None:
        loading = asyncio.ensure_future(toolset(limits).acall("load_skill", {"name": "told"}))
        assert "Do it." in (await toolset(limits).acall("load_skill", {"name": "act"})).content
        await pipe.open("news")
        assert "Now: news" in (await loading).content

    asyncio.run(main())


def test_reading_does_not_wait_for_a_person_who_is_asked_by_another(
    toolset: Callable[[prowess.Limits], prowess.Toolset], talk: Talk, tmp_path: Path
) -> None:
    limits = prowess.Limits(max_parallel_reads=1, max_parallel_scripts=1)
    plain = toolset(limits)
    answered = threading.Event()

    def ask(_request: prowess.TrustRequest) -> bool:
        return answered.wait(30) and False

    async def main() -> None:
        asking = prowess.Toolset(talk(trust=prowess.Trust(tmp_path / "none.json", ask=ask), limits=limits))
        loading = asyncio.ensure_future(asking.acall("load_skill", {"name": "told"}))
        assert "Do it." in (await plain.acall("load_skill", {"name": "act"})).content
        assert not loading.done()
        answered.set()
        assert "Now: !`" in (await loading).content

    asyncio.run(main())


def test_waiting_for_a_place_does_not_count_against_the_time_of_a_script(
    toolset: Callable[[prowess.Limits], prowess.Toolset], gate: Callable[[str], Gate]
) -> None:
    """The first script is ended by its time; the second waited for as long, and has all of its own."""
    limits = prowess.Limits(max_parallel_scripts=1, max_waiting_scripts=1, max_script_seconds=2.0)
    first, second = gate("first"), gate("second")

    async def main() -> None:
        one = asyncio.ensure_future(toolset(limits).acall("run_skill_script", wait_for(first)))
        with await asyncio.get_running_loop().run_in_executor(None, first.path.open, "w"):  # it runs, and reads
            two = asyncio.ensure_future(toolset(limits).acall("run_skill_script", wait_for(second)))
            assert (await one).data["limit"] == "timeout"
        await second.open()
        assert ((await two).data["limit"], (await two).data["stdout"]) == ("", "got it\n")

    asyncio.run(main())


def test_a_full_queue_answers_busy(
    toolset: Callable[[prowess.Limits], prowess.Toolset], gate: Callable[[str], Gate], events: list[prowess.Event]
) -> None:
    limits = prowess.Limits(max_parallel_scripts=1, max_waiting_scripts=0, max_script_seconds=61.0)
    pipe, never = gate("pipe"), gate("never")
    begun = gate("begun")

    async def main() -> None:
        conversation = toolset(limits)
        running = asyncio.ensure_future(conversation.acall("run_skill_script", wait_for(pipe)))
        writer = await asyncio.get_running_loop().run_in_executor(None, pipe.path.open, "w")  # it runs, and reads
        result = await conversation.acall("run_skill_script", wait_for(never))
        assert (result.is_error, result.data["reason"]) == (True, "busy")
        assert result.content.endswith("nothing was done. Try again when others have finished.")
        loaded = await conversation.acall("load_skill", {"name": "told"})
        assert (loaded.is_error, loaded.data["reason"]) == (True, "busy")
        assert conversation.session.active_skills == ()
        with writer:
            writer.write("it")
        assert (await running).data["stdout"] == "got it\n"
        again = asyncio.ensure_future(conversation.acall("run_skill_script", wait_for(begun)))
        await begun.open()
        assert (await again).data["stdout"] == "got it\n"

    asyncio.run(main())
    assert [event.detail["code"] for event in events if event.kind == "refused"] == ["busy", "busy"]


class Held:
    """A selector that keeps its place until the test lets it go."""

    strict = True

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Iterable[str]:  # noqa: ARG002 - protocol
        self.begun.set()
        self.go.wait(30)
        return [skill.name for skill in candidates]


def test_a_full_queue_of_reads_answers_busy_and_a_prompt_raises(
    put: Put, talk: Talk, dialect: prowess.DialectName
) -> None:
    put("plain")
    limits = prowess.Limits(max_parallel_reads=1, max_waiting_reads=0)
    held = Held()
    slow, other = (prowess.Toolset(talk(limits=limits, **more), dialect) for more in ({"selector": held}, {}))
    tool = other.tools()[0]

    async def main() -> None:
        prompting = asyncio.ensure_future(slow.aprompt())
        await asyncio.get_running_loop().run_in_executor(None, held.begun.wait)  # the loop goes on meanwhile
        result = await other.acall(tool.name, {tool.parameters["required"][0]: "plain"})
        assert (result.is_error, "busy" in str(result.data) or "waiting" in result.content) == (True, True)
        with pytest.raises(prowess.SkillError) as caught:
            await other.atools()
        assert caught.value.code == "busy"
        held.go.set()
        assert "plain" in await prompting or dialect != "prowess"
        assert not (await other.acall(tool.name, {tool.parameters["required"][0]: "plain"})).is_error

    asyncio.run(main())


def test_a_cancelled_call_leaves_its_place_in_the_queue(
    toolset: Callable[[prowess.Limits], prowess.Toolset], gate: Callable[[str], Gate]
) -> None:
    limits = prowess.Limits(max_parallel_scripts=1, max_waiting_scripts=1, max_script_seconds=62.0)
    pipe, never, last = gate("pipe"), gate("never"), gate("last")

    async def main() -> None:
        conversation = toolset(limits)
        running = asyncio.ensure_future(conversation.acall("run_skill_script", wait_for(pipe)))
        writer = await asyncio.get_running_loop().run_in_executor(None, pipe.path.open, "w")
        for _ in range(3):
            waiting = asyncio.ensure_future(conversation.acall("run_skill_script", wait_for(never)))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        waiting = asyncio.ensure_future(conversation.acall("run_skill_script", wait_for(last)))
        with writer:
            writer.write("it")
        assert (await running).data["stdout"] == "got it\n"
        await last.open()
        assert (await waiting).data["stdout"] == "got it\n"

    asyncio.run(main())


def test_nothing_runs_in_the_loops_own_executor(
    toolset: Callable[[prowess.Limits], prowess.Toolset], put: Put, talk: Talk
) -> None:
    """It belongs to the host: one that takes nothing any more changes nothing."""
    put("forked", fields="context: fork\n")

    async def main() -> None:
        closed = ThreadPoolExecutor(1)
        closed.shutdown()
        asyncio.get_running_loop().set_default_executor(closed)
        conversation = toolset(prowess.Limits())
        assert "Do it." in (await conversation.acall("load_skill", {"name": "act"})).content
        assert (await conversation.acall("no_such_tool")).is_error
        assert await conversation.aprompt()
        assert await conversation.atools()
        forking = prowess.Toolset(talk(), fork=lambda _: threading.current_thread().name)
        assert (await forking.acall("run_skill", {"name": "forked", "task": "x"})).content == "prowess forks"

    asyncio.run(main())


def test_a_process_that_forks_begins_with_empty_pools(put: Put, tmp_path: Path) -> None:
    """A web server that loads everything and then forks its workers: places taken in the parent are free in them."""
    put("plain")
    program = (
        "import asyncio, os, sys, threading, prowess\n"
        "held = threading.Event()\n"
        "class Selector:\n"
        "    strict = True\n"
        "    def select(self, query, candidates):\n"
        "        begun.set(); held.wait(); return ['plain']\n"
        "begun = threading.Event()\n"
        "limits = prowess.Limits(max_parallel_reads=1, max_waiting_reads=0)\n"
        "catalog = prowess.scan('skills')\n"
        "slow = prowess.Toolset(prowess.Session(catalog, limits=limits, selector=Selector()))\n"
        "other = prowess.Toolset(prowess.Session(catalog, limits=limits))\n"
        "thread = threading.Thread(target=lambda: asyncio.run(slow.aprompt())); thread.start(); begun.wait()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    result = asyncio.run(other.acall('load_skill', {'name': 'plain'}))\n"
        "    os._exit(int(result.is_error))\n"
        "status = os.waitpid(child, 0)[1]; held.set(); thread.join(); print(status)\n"
    )
    import subprocess

    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.stdout.strip(), ran.returncode) == ("0", 0), ran.stderr
