"""Waiting until something below some folders changes: told by the system, with ``watchfiles``, else by looking.

Nothing that happens after an object of these classes was made is missed: what came before the first wait is seen by it.
"""

from __future__ import annotations

import os
import time
from threading import Event
from typing import TYPE_CHECKING, Any, Literal, Protocol

from prowess.errors import SourceError
from prowess.files.marks import folder_mark, is_watched, tree_mark
from prowess.hints import explain_extra

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.limits import Limits

Notice = Literal["auto", "watchfiles", "stat"]

_REST = 10  # looking takes at most about a tenth of one processor
_GATHER_MS = 200
_STEP_MS = 20
_PATIENCE_MS = 50  # the first answer of the system says that it listens, so it must come soon


class Changes(Protocol):
    """Something that can be waited for."""

    def wait(self) -> bool:
        """Whether something changed since the last time; ``False`` once ``stop`` was called."""
        ...

    def stop(self) -> None:
        """End every wait, also from another thread."""
        ...


def changes_below(paths: Sequence[str], *, every: float, notice: Notice, limits: Limits) -> Changes:
    """What waits for changes below ``paths``, which need not exist yet."""
    if notice not in {"auto", "watchfiles", "stat"}:
        raise SourceError(f"notice must be 'auto', 'watchfiles' or 'stat', not {notice!r}")
    if notice != "stat" and _is_installed():
        return Told(paths, every=every, limits=limits)
    if notice == "watchfiles":
        raise SourceError(f"watchfiles is not installed: {explain_extra('watch')}", code="missing-extra")
    return Looked(paths, every=every, limits=limits)


def _is_installed() -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 - only where files are watched

    return find_spec("watchfiles") is not None


class Looked:
    """Changes that are found by looking at every file now and then."""

    def __init__(self, paths: Sequence[str], *, every: float, limits: Limits) -> None:
        self._paths = tuple(paths)
        self._every = every
        self._limits = limits
        self._stop = Event()
        self._pause = every
        self._marks = self._look()

    def _look(self) -> tuple[bytes, ...]:
        began = time.monotonic()
        marks = tuple(tree_mark(path, self._limits) for path in self._paths)
        self._pause = max(self._every, _REST * (time.monotonic() - began))
        return marks

    def wait(self) -> bool:
        while not self._stop.wait(self._pause):
            marks = self._look()
            if marks != self._marks:
                self._marks = marks
                return True
        return False

    def stop(self) -> None:
        self._stop.set()


class Told:
    """Changes that the system tells of; folders that come, go or are replaced are looked for besides."""

    def __init__(self, paths: Sequence[str], *, every: float, limits: Limits) -> None:
        self._paths = tuple(paths)
        self._every = every
        self._limits = limits
        self._stop = Event()
        self._told: Iterator[set[tuple[Any, str]]] | None = None
        self._replaced = False
        """Whether the system told of a watched folder itself: another may have come, even under the same number."""
        self._looked: Looked | None = None
        self._early = False
        self._begin()

    def _begin(self) -> None:
        """Be told of everything that happens from now on."""
        self._close()
        self._replaced = False
        self._folders = self._which()
        there = [path for path, mark in zip(self._paths, self._folders, strict=True) if mark is not None]
        try:
            self._told = self._listen(there) if there else None
            self._early = self._hear() if self._told is not None else False
        except (OSError, RuntimeError):  # the system watches no more files for this user
            self._close()
            self._looked = Looked(self._paths, every=self._every, limits=self._limits)

    def _which(self) -> tuple[tuple[int, int] | None, ...]:
        return tuple(folder_mark(path) for path in self._paths)

    def wait(self) -> bool:
        while not self._stop.is_set() and self._looked is None:
            if self._changed():
                return True
        self._close()
        return self._looked.wait() if self._looked is not None and not self._stop.is_set() else False

    def _changed(self) -> bool:
        early, self._early = self._early, False
        told = early or self._hear()
        if self._stop.is_set():
            return False
        if self._replaced or self._which() != self._folders:
            self._begin()
            return True
        return told

    def _hear(self) -> bool:
        """Whether the system told of a change within the time."""
        if self._told is None:
            self._stop.wait(self._every)
            return False
        told = next(self._told, set())
        self._replaced = any(path in self._paths for _, path in told)
        return bool(told)

    def _listen(self, paths: list[str]) -> Iterator[set[tuple[Any, str]]]:
        import watchfiles  # noqa: PLC0415 - an extra

        return watchfiles.watch(
            *paths,
            watch_filter=lambda _, path: all(map(is_watched, path.split(os.sep))),
            debounce=_GATHER_MS,
            step=_STEP_MS,
            rust_timeout=_PATIENCE_MS,
            yield_on_timeout=True,
            stop_event=self._stop,
            raise_interrupt=False,
        )

    def _close(self) -> None:
        close = getattr(self._told, "close", None)
        if close is not None:
            close()
        self._told = None

    def stop(self) -> None:
        self._stop.set()
        if self._looked is not None:
            self._looked.stop()
