"""Cancelling a call ends what it has begun: real programs, real connections, and the folders that they had."""

from __future__ import annotations

import asyncio
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Put = Callable[..., Path]
    Talk = Callable[..., prowess.Session]

LONG = 300
"""Seconds that everything here would take if nobody ended it: longer than any test waits."""
PROGRAM = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep({LONG})"], start_new_session=True)
with open(sys.argv[1], "w") as pipe:  # opened for writing once the test reads: by then both run
    pipe.write(f"{{os.getpid()}} {{child.pid}}")
time.sleep({LONG})
"""


class Scene:
    """A folder for temporary files, and a pipe by which a program says that it runs."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.temporary = base / "temporary"
        self.temporary.mkdir()
        self.pipe = base / "pipe"

    async def read_pids(self) -> list[int]:
        """Wait until the program runs; the numbers of its processes."""
        text = await asyncio.get_running_loop().run_in_executor(None, self.pipe.read_text)
        return [int(word) for word in text.split()]

    def left(self) -> list[str]:
        return sorted(path.name for path in self.temporary.iterdir())


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    if sys.platform == "win32":
        pytest.skip("NOT TESTED: needs named pipes of a file system")
    import os

    made = Scene(tmp_path)
    os.mkfifo(made.pipe)
    monkeypatch.setattr(tempfile, "tempdir", str(made.temporary))
    return made


@pytest.fixture
def trust(tmp_path: Path) -> prowess.Trust:
    return prowess.Trust(tmp_path / "trust.json")


def is_running(pid: int) -> bool:
    """Whether a process runs still; one that has ended and waits for its parent does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return status not in {"Z", "X"}


async def cancelled(call: Awaitable[object], pids: Awaitable[list[int]]) -> list[int]:
    """Cancel a call once its processes run; those of them that are left when the host goes on."""
    task = asyncio.ensure_future(call)
    running = await pids
    assert all(map(is_running, running))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return [pid for pid in running if is_running(pid)]


@pytest.mark.parametrize("sandbox", ["none", "landlock"])
def test_a_cancelled_script_ends_with_all_of_its_processes_and_its_folders(
    sandbox: str, put: Put, talk: Talk, scene: Scene, trust: prowess.Trust
) -> None:
    kinds = {kind.name: kind for kind in prowess.sandbox.available()}
    if not kinds[sandbox].usable:
        pytest.skip(f"NOT TESTED: scripts in the sandbox {sandbox!r}, which does not work here: {kinds[sandbox].why}")
    put("act", files={"scripts/run.py": PROGRAM})
    session = talk(trust=trust)
    trust.grant(session.skill("act"))
    scripts = prowess.Scripts(sandbox=sandbox, folder=scene.base)
    toolset = prowess.Toolset(session, scripts=scripts)
    call = {"name": "act", "script": "scripts/run.py", "args": [str(scene.pipe)]}

    async def main() -> list[int]:
        return await cancelled(toolset.acall("run_skill_script", call), scene.read_pids())

    assert asyncio.run(main()) == []
    assert scene.left() == []


def test_a_timeout_of_the_host_ends_a_script(put: Put, talk: Talk, scene: Scene, trust: prowess.Trust) -> None:
    put("act", files={"scripts/run.py": PROGRAM})
    session = talk(trust=trust)
    trust.grant(session.skill("act"))
    toolset = prowess.Toolset(session, scripts=prowess.Scripts(sandbox="none"))
    call = {"name": "act", "script": "scripts/run.py", "args": [str(scene.pipe)]}

    async def main() -> list[int]:
        pids = asyncio.ensure_future(scene.read_pids())
        with pytest.raises(TimeoutError):  # noqa: PT012 - what the host writes
            async with asyncio.timeout(None) as timeout:
                # As soon as the script runs: nobody has to guess how long that takes.
                pids.add_done_callback(lambda _: timeout.reschedule(0))
                await toolset.acall("run_skill_script", call)
        return [pid for pid in pids.result() if is_running(pid)]

    assert asyncio.run(main()) == []
    assert scene.left() == []


def test_a_cancelled_load_ends_its_commands_and_activates_nothing(
    put: Put, talk: Talk, scene: Scene, trust: prowess.Trust
) -> None:
    (scene.base / "program.py").write_text(PROGRAM, encoding="utf-8")
    put("act", body=f"!`'{sys.executable}' program.py pipe`\n!`touch second.txt`\n")
    session = talk(trust=trust)
    trust.grant(session.skill("act"))

    async def main() -> list[int]:
        return await cancelled(prowess.Toolset(session).acall("load_skill", {"name": "act"}), scene.read_pids())

    assert asyncio.run(main()) == []
    assert (scene.left(), session.active_skills, (scene.base / "second.txt").exists()) == ([], (), False)


def test_a_cancelled_fork_ends_its_process(put: Put, talk: Talk, scene: Scene) -> None:
    put("forked", fields="context: fork\n")
    fork = prowess.subprocess_fork([sys.executable, "-c", PROGRAM, str(scene.pipe)])
    toolset = prowess.Toolset(talk(), fork=fork)

    async def main() -> list[int]:
        return await cancelled(toolset.acall("run_skill", {"name": "forked", "task": "x"}), scene.read_pids())

    assert asyncio.run(main()) == []


def test_a_cancelled_fork_cancels_an_asynchronous_runner(put: Put, talk: Talk) -> None:
    put("forked", fields="context: fork\n")
    ended: list[str] = []

    async def main() -> None:
        begun = asyncio.Event()

        async def run(_prepared: prowess.PreparedFork) -> str:
            begun.set()
            try:
                await asyncio.sleep(LONG)
            finally:
                ended.append("cancelled")
            return ""

        task = asyncio.ensure_future(
            prowess.Toolset(talk(), fork=run).acall("run_skill", {"name": "forked", "task": "x"})
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["cancelled"]


def test_a_cancelled_call_cancels_the_question_to_a_person(put: Put, talk: Talk, tmp_path: Path) -> None:
    put("act", body="!`touch ran.txt`\n")
    ended: list[str] = []

    async def main() -> None:
        begun = asyncio.Event()

        async def ask(_request: prowess.TrustRequest) -> bool:
            begun.set()
            try:
                await asyncio.sleep(LONG)
            finally:
                ended.append("cancelled")
            return True

        session = talk(trust=prowess.Trust(tmp_path / "t.json", ask=ask))
        task = asyncio.ensure_future(prowess.Toolset(session).acall("load_skill", {"name": "act"}))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)  # the cancelled question is a task of its own: it ends in the loop's next turn
        assert session.active_skills == ()

    asyncio.run(main())
    assert ended == ["cancelled"]
    assert not (tmp_path / "ran.txt").exists()


# -- fetches --------------------------------------------------------------------------------------------------------


@pytest.fixture
def silent() -> Iterator[tuple[str, threading.Event, threading.Event]]:
    """A site that announces a skill, and says nothing when its file is asked for: address, question, end."""
    index = b'{"skills": [{"name": "far", "description": "Far away.", "files": ["SKILL.md"]}]}'
    asked, hung_up = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    head = connection.recv(65_536)
                    if b"SKILL.md" in head:
                        asked.set()
                        if connection.recv(1) == b"":
                            hung_up.set()
                    elif b"/.well-known/skills/index.json" in head:
                        length = f"Content-Length: {len(index)}\r\n".encode()
                        kind = b"Content-Type: application/json\r\nConnection: close\r\n"
                        connection.sendall(b"HTTP/1.1 200 OK\r\n" + kind + length + b"\r\n" + index)
                    else:
                        connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", asked, hung_up
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def test_a_cancelled_fetch_closes_its_connection(
    silent: tuple[str, threading.Event, threading.Event], talk: Talk, tmp_path: Path
) -> None:
    address, asked, hung_up = silent
    source = prowess.Source.url(address, allow_private=True, allow_http=True, cache_dir=tmp_path / "cache")
    catalog = prowess.Catalog.from_sources([source])
    assert [skill.name for skill in catalog] == ["far"], catalog.issues
    toolset = prowess.Toolset(talk(catalog))

    async def main() -> bool:
        task = asyncio.ensure_future(toolset.acall("load_skill", {"name": "far"}))
        await asyncio.get_running_loop().run_in_executor(None, asked.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # Far below the time after which a silent server is given up (Limits.fetch_idle_seconds).
        return await asyncio.get_running_loop().run_in_executor(None, hung_up.wait, 10)

    assert asyncio.run(main())
