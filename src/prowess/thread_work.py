"""Work that an event loop has given to a thread: how it is cancelled, and how it awaits something on that loop.

``asyncio`` cannot interrupt a thread. So code that may take long (a program, a connection, a question to a person)
passes ``call_on_cancel`` a callback that stops it, and the loop calls that when the host cancels the call.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar

from prowess.errors import SkillError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Awaitable, Callable, Iterator

    class WorkPool(Protocol):
        """A number of places for work; more work than there are places waits for its turn."""

        what: str
        """The kind of work, for the names of threads."""

        def enter(self, begin: Callable[[], None]) -> None:
            """Call ``begin`` as soon as there is a place."""

        def withdraw(self, begin: Callable[[], None]) -> bool:
            """Forget ``begin``, and return whether it was still waiting."""

        def leave(self) -> None:
            """Free a place."""


T = TypeVar("T")
_CANCEL_WAIT_SECONDS = 1.0
"""How long a cancelled call waits for its thread, so that folders and processes are gone when the host goes on."""


class WorkCancelledError(BaseException):
    """The host has cancelled the call. It is no ``Exception``, so that no code that handles failures goes on."""


class LoopRunningError(Exception):
    """Something must be awaited in a thread whose event loop is running, and which would wait for itself."""


class ThreadWork:
    """One piece of work in a thread, for a call that a host awaits in ``loop``; ``leave_place`` frees its place."""

    def __init__(self, loop: AbstractEventLoop, leave_place: Callable[[], None]) -> None:
        self.loop = loop
        self.is_cancelled = False
        self._leave_place: Callable[[], None] | None = leave_place
        self._stop_callbacks: list[Callable[[], object]] = []
        self._lock = Lock()

    def run(self, function: Callable[[], T]) -> T:
        """Return what ``function`` returns, with this as the current work.

        It must be called in a context of its own. Raises ``WorkCancelledError`` when the call was cancelled before.
        """
        _CURRENT_WORK.set(self)
        try:
            self.raise_if_cancelled()
            return function()
        finally:
            self.release_slot()

    def cancel(self) -> None:
        """Call the stop callbacks of the work, from any thread, and return at once."""
        with self._lock:
            self.is_cancelled = True
            callbacks = tuple(self._stop_callbacks)
        for stop in callbacks:  # without the lock: a callback may end a block, which removes it
            stop()

    def release_slot(self) -> None:
        """Give the place of this work in its pool to others; a second call does nothing."""
        with self._lock:
            leave, self._leave_place = self._leave_place, None
        if leave is not None:
            leave()

    def raise_if_cancelled(self) -> None:
        """Raise ``WorkCancelledError`` when the host has cancelled the call."""
        if self.is_cancelled:
            raise WorkCancelledError

    def add_stop_callback(self, stop: Callable[[], object]) -> None:
        """Have ``stop`` called on cancellation. Raises ``WorkCancelledError`` when that has happened already."""
        with self._lock:
            # Checked under the lock: a cancellation between check and append would never call ``stop``.
            self.raise_if_cancelled()
            self._stop_callbacks.append(stop)

    def remove_stop_callback(self, stop: Callable[[], object]) -> None:
        """Have ``stop`` not called any more."""
        with self._lock:
            self._stop_callbacks.remove(stop)


_CURRENT_WORK: ContextVar[ThreadWork | None] = ContextVar("prowess_work", default=None)


def current_work() -> ThreadWork | None:
    """Return the work that this thread does for an event loop, or ``None`` in a synchronous call."""
    return _CURRENT_WORK.get()


def raise_if_cancelled() -> None:
    """Raise ``WorkCancelledError`` when the host has cancelled the call; loops call it between two steps."""
    work = _CURRENT_WORK.get()
    if work is not None:
        work.raise_if_cancelled()


@contextmanager
def call_on_cancel(stop: Callable[[], object]) -> Iterator[None]:
    """Have ``stop`` called when the host cancels the call while the block runs; ``stop`` must not block.

    Raises ``WorkCancelledError`` after a cancellation, in place of what the block raised or returned. In a synchronous
    call, which nobody can cancel, nothing happens.
    """
    work = _CURRENT_WORK.get()
    if work is None:
        yield
        return
    work.add_stop_callback(stop)
    try:
        yield
    except Exception:
        work.raise_if_cancelled()  # the error is only how the stopped code failed
        raise
    finally:
        work.remove_stop_callback(stop)
    work.raise_if_cancelled()


def await_result(awaitable: Awaitable[T]) -> T:
    """Return the result of an awaitable: on the loop of the host that awaits this work, else on a loop of its own.

    Raises what the awaitable raises, or ``LoopRunningError`` in a synchronous call inside a running loop.
    """
    import asyncio

    async def await_on_loop() -> T:
        _CURRENT_WORK.set(None)  # this runs as a task of the host's loop, which is not the work of this thread
        return await awaitable

    if is_loop_running():
        close = getattr(awaitable, "close", None)
        if close is not None:
            close()  # otherwise Python warns of a coroutine that was never awaited
        raise LoopRunningError
    work = _CURRENT_WORK.get()
    if work is None:
        return asyncio.run(await_on_loop())
    # The place is freed first: a person may take long, and what is awaited may itself need a place in the pool.
    work.release_slot()
    future = asyncio.run_coroutine_threadsafe(await_on_loop(), work.loop)
    with call_on_cancel(future.cancel):
        return future.result()


def run_awaitable(awaitable: Awaitable[T]) -> T:
    """Return what ``await_result`` returns; in a thread whose loop is running, the awaitable gets another thread."""
    if not is_loop_running():
        return await_result(awaitable)
    from concurrent.futures import ThreadPoolExecutor

    # With a copy of the context: the awaitable may ask for what the host set for this conversation.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, await_result, awaitable).result()


def is_loop_running() -> bool:
    """Return whether this thread is inside an event loop."""
    # Without an import: where nobody has imported asyncio, no loop can run, and importing it takes long.
    asyncio: Any = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None  # noqa: SLF001 - documented for this use


class _UnlimitedPool:
    """A pool in which all work begins at once."""

    what = "work"

    def enter(self, begin: Callable[[], None]) -> None:
        begin()

    def withdraw(self, begin: Callable[[], None]) -> bool:  # noqa: ARG002 - nobody waits
        return False

    def leave(self) -> None:
        pass


class _ThreadCall(Generic[T]):
    """One call of ``run_in_thread``: its function, its thread, and the future that its outcome arrives in."""

    def __init__(self, function: Callable[[], T], pool: WorkPool, loop: AbstractEventLoop) -> None:
        self.work = ThreadWork(loop, pool.leave)
        # The outcome is a callable that returns or raises: a future refuses some exceptions, and warns of those that
        # nobody asks for after a cancellation.
        self.outcome: Future[Callable[[], T]] = loop.create_future()
        self._function = function
        self._thread_name = f"prowess {pool.what}"
        self._context = copy_context()

    def start_thread(self) -> None:
        """Start the thread; where the system has none left, the outcome is an error. May be called in any thread."""
        try:
            Thread(target=self._run, name=self._thread_name).start()
        except RuntimeError:
            self.work.release_slot()
            busy = SkillError("the system has no thread left for this call: nothing was done", code="busy")
            self._send_outcome(partial(_raise_error, busy))

    def _run(self) -> None:
        try:
            outcome: Callable[[], T] = partial(_return_result, self._context.run(self.work.run, self._function))
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            outcome = partial(_raise_error, error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._send_outcome(outcome)

    def _send_outcome(self, outcome: Callable[[], T]) -> None:
        self.work.loop.call_soon_threadsafe(self._set_outcome, outcome)

    def _set_outcome(self, outcome: Callable[[], T]) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


async def run_in_thread(function: Callable[[], T], pool: WorkPool | None = None) -> T:
    """Return what ``function`` returns in a thread of its own, or raise what it raises.

    With a ``pool`` the thread starts when the pool has a place. When the awaiting task is cancelled, the work is
    stopped by its callbacks (``call_on_cancel``).
    """
    import asyncio

    # Not the loop's default executor: it is the host's, and a script or a person would hold its threads for long.
    places = pool or _UnlimitedPool()
    call = _ThreadCall(function, places, asyncio.get_running_loop())
    start_thread = call.start_thread
    places.enter(start_thread)
    try:
        outcome = await asyncio.shield(call.outcome)
    except asyncio.CancelledError:
        # Work that still waits for a place is withdrawn. Work that has begun is stopped, and given a moment to end.
        if not places.withdraw(start_thread):
            call.work.cancel()
            await asyncio.wait([call.outcome], timeout=_CANCEL_WAIT_SECONDS)
        raise
    return outcome()


def _return_result(result: T) -> T:
    return result


def _raise_error(error: BaseException) -> NoReturn:
    raise error
