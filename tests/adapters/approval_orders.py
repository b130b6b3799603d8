"""The rule of approvals, tried in every adapter over random orders of what a host and a person may do.

A yes counts for one call and ends with it, however it ends. A no wins over everything, and counts for each equal call.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, Protocol

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from prowess import NotTrustedError, Scripts
from tests.adapters.skill_library import RUN_COUNT, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

Step = Literal["ask", "yes", "no", "cancel", "retry", "restart"]
"""``ask``: the model makes the call. ``cancel``: a person says yes, and the run is cancelled while the script runs.
``retry``: the host runs again without a decision. ``restart``: another worker goes on, with what was stored."""
ATTACKS: tuple[list[Step], ...] = (
    ["cancel", "no", "ask"],
    ["cancel", "retry", "no", "ask"],
    ["cancel", "retry", "yes", "ask", "yes"],
    ["cancel", "yes", "retry", "yes"],
    ["cancel", "restart", "retry", "no", "ask"],
    ["cancel", "cancel", "retry", "cancel", "no", "restart", "ask"],
    ["yes", "ask", "restart", "no", "restart", "ask", "yes"],
)
UNBOXED = Scripts(sandbox="none")
"""The script knocks at a port of this machine, which no sandbox lets it do."""


class Host(Protocol):
    """A host over one framework, with one conversation; each method says whether a person is asked now."""

    async def ask(self) -> bool:
        """Have the model make the call ``RUN_COUNT``."""

    async def decide(self, *, yes: bool) -> bool:
        """Pass on what the person says to the question that was asked last."""

    async def retry(self) -> bool:
        """Run again without a decision, as a host does whose run was cut off."""

    def restart(self) -> None:
        """Go on in another worker, which has what the framework stored and nothing else."""


class Door:
    """Where the script knocks when it begins; it runs to its end when the door is opened."""

    def __init__(self) -> None:
        self.knocks = 0
        self.is_closed = False
        self.knocked = asyncio.Event()
        self._visits: set[asyncio.Task[Any] | None] = set()

    @asynccontextmanager
    async def put_into(self, library: Path) -> AsyncIterator[None]:
        """Have the script of ``count-words`` knock at this door."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        knock = f"import socket\nsocket.create_connection(('127.0.0.1', {port})).recv(1)\nprint('2 words')\n"
        (library / "count-words/scripts/count.py").write_text(knock)
        try:
            yield
        finally:
            server.close()
            await asyncio.gather(*filter(None, self._visits))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._visits.add(asyncio.current_task())
        self.knocks += 1
        self.knocked.set()
        with suppress(ConnectionError):
            if self.is_closed:
                await asyncio.wait_for(reader.read(), 30)  # until the script is ended
            writer.close()
            await writer.wait_closed()

    async def cancel_behind(self, run: asyncio.Future[bool]) -> None:
        """Cancel a run whose script stands before the closed door."""
        self.is_closed = True
        self.knocked.clear()
        try:
            await asyncio.wait_for(wait_until(self.knocked, run), 30)
            run.cancel()
            with suppress(asyncio.CancelledError):
                await run
        finally:
            self.is_closed = False


async def follow(host: Host, door: Door, steps: list[Step]) -> None:
    """Take steps, and check after each how often the script has begun in it."""
    is_open = is_refused = is_used = False
    for number, step in enumerate(["ask", *steps]):
        before, least, most = door.knocks, 0, 0
        if step == "restart":
            host.restart()
        elif step == "ask" and not is_open:
            is_open, is_used = await host.ask(), False
            assert is_open is not is_refused
        elif step == "retry" and is_open:
            is_open = await host.retry()
        elif step == "no" and is_open:
            is_open, is_refused = await host.decide(yes=False), True
            assert not is_open
        elif step == "yes" and is_open:
            # A worker that knows that a yes was used up raises, or asks again.
            least, most = int(not is_used), 1
            with suppress(*[NotTrustedError] * is_used):
                is_open = await host.decide(yes=True)
                is_used = is_used and is_open
        elif step == "cancel" and is_open and not is_used:
            least = most = 1
            await door.cancel_behind(asyncio.ensure_future(host.decide(yes=True)))
            is_used = True
        assert least <= door.knocks - before <= most, (number, step, steps)


def check_orders(library: Path, open_host: Callable[[], AbstractAsyncContextManager[Host]]) -> None:
    """Follow random orders, each with a host of its own; the attacks that were found once come first."""

    async def run(steps: list[Step]) -> None:
        door = Door()
        async with door.put_into(library), open_host() as host:
            await follow(host, door, steps)

    orders = st.lists(st.sampled_from(Step.__args__), max_size=7)  # type: ignore[attr-defined]

    @settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(orders)
    def check(steps: list[Step]) -> None:
        asyncio.run(run(steps))

    for attack in ATTACKS:
        check = example(attack)(check)
    check()


__all__ = ["RUN_COUNT", "UNBOXED", "Host", "check_orders"]
