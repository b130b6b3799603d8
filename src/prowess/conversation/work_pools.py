"""Pools that bound how many reads, scripts and forks of all conversations run at a time, and how many wait.

The pools belong to the process: there is one of each kind for each choice of its bounds in ``Limits``. Nothing runs in
the event loop's default executor, which is the host's. Each call gets a new thread: the threads of a pool would not
survive the fork of a web server that loads everything before it starts its workers.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from prowess.errors import SkillError
from prowess.thread_work import call_on_cancel, current_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.limits import Limits

    OnStart = Callable[[], None]

T = TypeVar("T")


class Pool:
    """A queue with ``parallel`` places: at most ``waiting`` later calls wait, in their order of arrival."""

    def __init__(self, what: str, parallel: int, waiting: int) -> None:
        self.what = what
        self._parallel = parallel
        self._waiting = waiting
        self._taken = 0
        self._queue: deque[OnStart] = deque()
        self._lock = threading.Lock()

    def enter(self, begin: OnStart) -> None:
        """Call ``begin`` as soon as there is a place: now, or later in the thread that gives up its place.

        Raises ``SkillError`` (code ``busy``) when too many wait already.
        """
        with self._lock:
            if self._taken >= self._parallel:
                if len(self._queue) >= self._waiting:
                    raise SkillError(
                        f"too many {self.what} are waiting to run ({self._waiting:,}): nothing was done", code="busy"
                    )
                self._queue.append(begin)
                return
            self._taken += 1
        # Outside of the lock: ``begin`` is the caller's, and may enter a pool itself.
        begin()

    def withdraw(self, begin: OnStart) -> bool:
        """Wait no longer; return ``False`` when ``begin`` has its place already."""
        with self._lock:
            if begin not in self._queue:
                return False
            self._queue.remove(begin)
            return True

    def leave(self) -> None:
        """Give up a place to the call that has waited for longest."""
        with self._lock:
            if not self._queue:
                self._taken -= 1
                return
            begin = self._queue.popleft()
        begin()

    @contextmanager
    def hold_place(self) -> Iterator[None]:
        """Wait for a place and keep it for the block; a cancelled call waits no longer.

        Raises ``SkillError`` (code ``busy``) when too many wait already.
        """
        work = current_work()
        if work is not None:
            work.release_slot()  # so that a read of another conversation does not wait for this script
        turn = threading.Event()
        self.enter(turn.set)
        try:
            with call_on_cancel(turn.set):
                turn.wait()
        except BaseException:
            # Cancelled: the place may have come in the same moment, and is then passed on.
            if not self.withdraw(turn.set):
                self.leave()
            raise
        try:
            yield
        finally:
            self.leave()


class Pools(NamedTuple):
    """The pools of a process for one choice of bounds."""

    reads: Pool
    scripts: Pool
    forks: Pool


def get_pools(limits: Limits) -> Pools:
    """Return the pools that everything with these bounds shares."""
    return Pools(
        _make_pool("reads", limits.max_parallel_reads, limits.max_waiting_reads),
        _make_pool("scripts", limits.max_parallel_scripts, limits.max_waiting_scripts),
        _make_pool("forks", limits.max_parallel_forks, limits.max_waiting_scripts),
    )


_make_pool = cache(Pool)


# Threads do not survive a fork: the places that they had would be taken for ever in the child.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_make_pool.cache_clear)
