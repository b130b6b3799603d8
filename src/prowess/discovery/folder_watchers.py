"""Waiting until something below some folders changes: the system tells (``watchfiles``), or every file is looked at.

A watcher misses nothing that happens after it was made: the first wait sees what came before it.
"""

from __future__ import annotations

import os
import time
from threading import Event
from typing import TYPE_CHECKING, Any, Literal, Protocol

from prowess.errors import SourceError
from prowess.files.identity import fingerprint_tree, is_watched_folder, watched_identity
from prowess.hints import explain_extra

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.limits import Limits

WatchMethod = Literal["auto", "watchfiles", "stat"]

_POLL_REST_FACTOR = 10  # Looking at every file takes at most about a tenth of one processor.
_DEBOUNCE_MS = 200
_STEP_MS = 20
_TIMEOUT_MS = 50  # The first answer of the system shows that it listens now, so it must come soon.


class ChangeWatcher(Protocol):
    """What waits for changes below some folders."""

    def wait(self) -> bool:
        """Wait, and return ``True`` after the next change since the last call, ``False`` once ``stop`` was called."""
        ...

    def stop(self) -> None:
        """End every wait; may be called from any thread."""
        ...


def watch_folders(paths: Sequence[str], *, every: float, notice: WatchMethod, limits: Limits) -> ChangeWatcher:
    """Return what waits for changes below folders, or of single files, which need not exist yet.

    Raises ``SourceError`` for an unknown ``notice``, and for ``"watchfiles"`` when that package is not installed.
    """
    if notice not in {"auto", "watchfiles", "stat"}:
        raise SourceError(f"notice must be 'auto', 'watchfiles' or 'stat', not {notice!r}")
    if notice != "stat" and _has_watchfiles():
        return NativeWatcher(paths, every=every, limits=limits)
    if notice == "watchfiles":
        raise SourceError(f"watchfiles is not installed: {explain_extra('watch')}", code="missing-extra")
    return PollingWatcher(paths, every=every, limits=limits)


def _has_watchfiles() -> bool:
    from importlib.util import find_spec

    return find_spec("watchfiles") is not None


class PollingWatcher:
    """Finds changes by looking at every file now and then."""

    def __init__(self, paths: Sequence[str], *, every: float, limits: Limits) -> None:
        self._paths = tuple(paths)
        self._every = every
        self._limits = limits
        self._stop = Event()
        self._pause = every
        self._marks = self._read_marks()

    def _read_marks(self) -> tuple[bytes, ...]:
        began = time.monotonic()
        marks = tuple(fingerprint_tree(path, self._limits) for path in self._paths)
        self._pause = max(self._every, _POLL_REST_FACTOR * (time.monotonic() - began))
        return marks

    def wait(self) -> bool:
        while not self._stop.wait(self._pause):
            marks = self._read_marks()
            if marks != self._marks:
                self._marks = marks
                return True
        return False

    def stop(self) -> None:
        self._stop.set()


class NativeWatcher:
    """Is told of changes by the system, and looks itself for folders that come, go or are replaced."""

    def __init__(self, paths: Sequence[str], *, every: float, limits: Limits) -> None:
        self._paths = tuple(paths)
        self._every = every
        self._limits = limits
        self._stop = Event()
        self._events: Iterator[set[tuple[Any, str]]] | None = None
        self._replaced = False
        """Whether the system told of a watched folder itself: another may stand there now, even with its inode."""
        self._fallback: PollingWatcher | None = None
        self._has_early_change = False
        self._subscribe()

    def _subscribe(self) -> None:
        """Be told of everything that happens from now on."""
        self._close()
        self._replaced = False
        # Read before the system listens: a folder that is replaced in between differs at the next look.
        self._marks = self._read_marks()
        existing = [path for path in self._paths if os.path.isdir(path)]
        try:
            self._events = self._open_events(existing) if existing else None
            self._has_early_change = self._receive_events() if self._events is not None else False
        except (OSError, RuntimeError):  # The system has a limit on the files that it watches for one user.
            self._close()
            self._fallback = PollingWatcher(self._paths, every=self._every, limits=self._limits)

    def _read_marks(self) -> tuple[tuple[int, ...] | None, ...]:
        return tuple(watched_identity(path) for path in self._paths)

    def wait(self) -> bool:
        while not self._stop.is_set() and self._fallback is None:
            if self._wait_once():
                return True
        self._close()
        return self._fallback.wait() if self._fallback is not None and not self._stop.is_set() else False

    def _wait_once(self) -> bool:
        early, self._has_early_change = self._has_early_change, False
        has_change = early or self._receive_events()
        if self._stop.is_set():
            return False
        if self._replaced or self._read_marks() != self._marks:
            self._subscribe()
            return True
        return has_change

    def _receive_events(self) -> bool:
        """Return whether the system told of a change before its timeout."""
        if self._events is None:
            self._stop.wait(self._every)
            return False
        changes = next(self._events, set())
        self._replaced = any(path in self._paths for _, path in changes)
        return bool(changes)

    def _open_events(self, paths: list[str]) -> Iterator[set[tuple[Any, str]]]:
        import watchfiles

        return watchfiles.watch(
            *paths,
            watch_filter=lambda _, path: all(map(is_watched_folder, path.split(os.sep))),
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            rust_timeout=_TIMEOUT_MS,
            yield_on_timeout=True,
            stop_event=self._stop,
            raise_interrupt=False,
        )

    def _close(self) -> None:
        close = getattr(self._events, "close", None)
        if close is not None:
            close()
        self._events = None

    def stop(self) -> None:
        self._stop.set()
        if self._fallback is not None:
            self._fallback.stop()
