"""Work that an event loop has given to a thread: how it is told to stop, and how it awaits on that loop.

``asyncio`` cannot interrupt a thread. So whatever may take long (a program, a connection, a person who is asked) says
in ``call_on_cancel`` how it is stopped, and the loop calls that when the host cancels the call.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from prowess.errors import SkillError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Awaitable, Callable, Iterator

    class WorkPool(Protocol):
        """Where work waits for its turn."""

        what: str

        def enter(self, begin: Callable[[], None]) -> None: ...
        def withdraw(self, begin: Callable[[], None]) -> bool: ...
        def leave(self) -> None: ...


T = TypeVar("T")
_CANCEL_WAIT_SECONDS = 1.0
"""How long a cancelled call waits for its thread, so that folders and processes are gone when the host goes on."""


class WorkCancelledError(BaseException):
    """The host has cancelled the call. Not an ``Exception``: nothing that handles failures may go on after it."""


class LoopRunningError(Exception):
    """Something must be awaited, in a thread that already runs an event loop and cannot wait for it."""


class ThreadWork:
    """One piece of work in a thread, for a call that a host awaits in ``loop``."""

    def __init__(self, loop: AbstractEventLoop, leave_place: Callable[[], None]) -> None:
        self.loop = loop
        self.is_cancelled = False
        self._release_slot: Callable[[], None] | None = leave_place
        self._stop_callbacks: list[Callable[[], None]] = []
        self._lock = Lock()

    def run(self, function: Callable[[], T]) -> T:
        """Return what ``function`` returns, with this as the current work; to be called in a context of its own."""
        _CURRENT_WORK.set(self)
        try:
            self.raise_if_cancelled()
            return function()
        finally:
            self.release_slot()

    def cancel(self) -> None:
        """Stop what is under way, from whatever thread; returns at once."""
        with self._lock:
            self.is_cancelled = True
            stops = tuple(self._stop_callbacks)
        for stop in stops:
            stop()

    def release_slot(self) -> None:
        """Let others have the place of this work in its pool; the second time nothing happens."""
        with self._lock:
            leave, self._release_slot = self._release_slot, None
        if leave is not None:
            leave()

    def raise_if_cancelled(self) -> None:
        if self.is_cancelled:
            raise WorkCancelledError

    def add_stop_callback(self, stop: Callable[[], None]) -> None:
        with self._lock:
            # Under the lock: a cancellation that came before would never call it.
            self.raise_if_cancelled()
            self._stop_callbacks.append(stop)

    def remove_stop_callback(self, stop: Callable[[], None]) -> None:
        with self._lock:
            self._stop_callbacks.remove(stop)


_CURRENT_WORK: ContextVar[ThreadWork | None] = ContextVar("prowess_work", default=None)


def current_work() -> ThreadWork | None:
    """Return the work that this thread does for an event loop; ``None`` in a plain call."""
    return _CURRENT_WORK.get()


def raise_if_cancelled() -> None:
    """Raise ``WorkCancelledError`` when the host has cancelled the call: for loops, between two steps."""
    work = _CURRENT_WORK.get()
    if work is not None:
        work.raise_if_cancelled()


@contextmanager
def call_on_cancel(stop: Callable[[], None]) -> Iterator[None]:
    """Have ``stop`` called when the host cancels the call while the block runs; it must not block.

    Raises ``WorkCancelledError`` where that has happened, whatever the block raised or returned. In a plain call, which
    nobody cancels, nothing happens.
    """
    work = _CURRENT_WORK.get()
    if work is None:
        yield
        return
    work.add_stop_callback(stop)
    try:
        yield
    except Exception:
        work.raise_if_cancelled()  # what was stopped fails in its own way
        raise
    finally:
        work.remove_stop_callback(stop)
    work.raise_if_cancelled()


def await_result(awaitable: Awaitable[T]) -> T:
    """Return what an awaitable gives: on the loop of the host that awaits this work, else on a loop of its own.

    Raises what it raises, or ``LoopRunningError`` in a plain call inside a running loop, which would wait for itself.
    """
    import asyncio  # noqa: PLC0415 - only for what must be awaited

    async def await_on_loop() -> T:
        _CURRENT_WORK.set(None)  # on the host's loop, in a task of its own, this thread's work is not the current one
        return await awaitable

    if is_loop_running():
        close = getattr(awaitable, "close", None)
        if close is not None:
            close()  # else Python warns of a coroutine that was never awaited
        raise LoopRunningError
    work = _CURRENT_WORK.get()
    if work is None:
        return asyncio.run(await_on_loop())
    # It may take as long as a person takes, and may call back into a toolset, which needs a place as well.
    work.release_slot()
    future = asyncio.run_coroutine_threadsafe(await_on_loop(), work.loop)

    def cancel_future() -> None:
        future.cancel()

    with call_on_cancel(cancel_future):
        return future.result()


def is_loop_running() -> bool:
    """Whether this thread is inside an event loop."""
    import sys  # noqa: PLC0415 - beside the next line

    asyncio: Any = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None  # noqa: SLF001 - public, without raising


class _UnlimitedPool:
    """Places for everybody, at once."""

    what = "work"

    def enter(self, begin: Callable[[], None]) -> None:
        begin()

    def withdraw(self, begin: Callable[[], None]) -> bool:  # noqa: ARG002 - nobody waits
        return False

    def leave(self) -> None:
        pass


async def run_in_thread(function: Callable[[], T], pool: WorkPool | None = None) -> T:
    """Return what ``function`` returns in a thread of its own, or raise what it raises; ``pool``: in its turn.

    When the awaiting task is cancelled, so is the work: what said how it is stopped (``call_on_cancel``) is stopped.
    The loop's default executor is the host's, and its threads would be held for as long as a script or a person takes.
    """
    import asyncio  # noqa: PLC0415 - only asynchronous hosts need it

    places = pool or _UnlimitedPool()
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Callable[[], T]] = loop.create_future()
    work, context = ThreadWork(loop, places.leave), copy_context()

    def set_outcome(outcome: Callable[[], T]) -> None:
        if not ended.done():
            ended.set_result(outcome)

    def run_work() -> None:
        try:
            outcome: Callable[[], T] = partial(_return_result, context.run(work.run, function))
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            outcome = partial(_raise_error, error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(set_outcome, outcome)

    def start_thread() -> None:
        try:
            Thread(target=run_work, name=f"prowess {places.what}").start()
        except RuntimeError:  # also in the thread of another call, which leaves its place to this one
            work.release_slot()
            busy = SkillError("the system has no thread left for this call: nothing was done", code="busy")
            loop.call_soon_threadsafe(set_outcome, partial(_raise_error, busy))

    places.enter(start_thread)
    try:
        outcome = await asyncio.shield(ended)
    except asyncio.CancelledError:
        if not places.withdraw(start_thread):
            work.cancel()
            await asyncio.wait([ended], timeout=_CANCEL_WAIT_SECONDS)
        raise
    return outcome()


def _return_result(result: T) -> T:
    return result


def _raise_error(error: BaseException) -> NoReturn:
    raise error
