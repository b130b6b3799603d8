"""What changed while the console runs: a list for a page, and events for browsers that look at one."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from starlette.concurrency import run_in_threadpool

from prowess.conversation.moment import compare_catalogs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from prowess.web.library import Library
    from prowess.web.library_state import LibraryState
    from prowess.web.plans import PlanBook

_MAX_ENTRIES = 100
_POLL_SECONDS = 0.5
"""How often a stream looks. A look costs a few file system calls, and only open pages look."""
_SILENCE_SECONDS = 15.0
"""After so long without an event a comment is sent, by which a connection that is gone is noticed."""


class FeedEntry(NamedTuple):
    """What changed at one time: some skills by name, or a lock file or a grant, or else another file of a skill."""

    time: float
    """In seconds since 1970."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    is_about_records: bool = False
    """Whether a lock file or the grants changed."""

    @property
    def has_names(self) -> bool:
        """Whether the SKILL.md of some skill was added, removed or changed."""
        return bool(self.added or self.removed or self.changed)


class ChangeFeed:
    """The changes of a library. It looks when it is asked, so that it costs nothing while nobody looks."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = Lock()
        self._seen = library.state
        self._entries: deque[FeedEntry] = deque(maxlen=_MAX_ENTRIES)
        self.revision = 0
        """A number that grows with every change."""
        self.is_closed = False
        """Whether the console ends, so that nobody waits for a change any more."""

    def close(self) -> None:
        """End every stream of events, within the time between two looks."""
        self.is_closed = True

    def refresh(self) -> list[FeedEntry]:
        """Look for a change since the last look, and return all changes that are remembered, the newest first."""
        self._library.follow_changes()
        with self._lock:
            state = self._library.state
            if state is not self._seen:
                self._add_entry(state)
                self._seen = state
                self.revision += 1
            return [*reversed(self._entries)]

    def _add_entry(self, state: LibraryState) -> None:
        seen = self._seen
        diff = compare_catalogs(seen.catalog, state.catalog, {})
        is_about_records = state.marks.records != seen.marks.records
        entry = FeedEntry(time.time(), diff.added, diff.removed, diff.changed, is_about_records)
        # Neither an answer of the sources of installs nor the beginning of watching is a change of a file.
        is_same_library = state.catalog is seen.catalog or state.marks.is_followed != seen.marks.is_followed
        if not entry.has_names and not is_about_records and is_same_library:
            return
        # An editor or a build writes many files one after the other, which would push everything else out of the list.
        if not entry.has_names and self._entries and self._entries[-1][1:] == entry[1:]:
            self._entries.pop()
        self._entries.append(entry)


async def stream_events(feed: ChangeFeed, plans: PlanBook, every: float = _POLL_SECONDS) -> AsyncIterator[str]:
    """Yield server-sent events until the feed is closed: ``library`` when that changed, ``plans`` when a plan did."""
    await run_in_threadpool(feed.refresh)
    seen = {"library": feed.revision, "plans": plans.revision}
    yield "retry: 2000\n\n"
    silent = 0.0
    while not feed.is_closed:
        await asyncio.sleep(every)
        await run_in_threadpool(feed.refresh)
        now = {"library": feed.revision, "plans": plans.revision}
        events = [f"event: {name}\ndata: {revision}\n\n" for name, revision in now.items() if revision != seen[name]]
        seen, silent = now, 0.0 if events else silent + every
        if events:
            yield "".join(events)
        elif silent >= _SILENCE_SECONDS:
            silent = 0.0
            yield ": nothing changed\n\n"
