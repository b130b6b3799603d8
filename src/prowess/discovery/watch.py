"""Watching folders: a new catalogue after every change, for ordinary and asynchronous loops."""

from __future__ import annotations

import os
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from prowess.discovery.folder_watchers import watch_folders
from prowess.discovery.scan import discover, resolve_standard_places, root_folder, scan
from prowess.limits import DEFAULT_LIMITS
from prowess.thread_work import call_on_cancel, run_in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prowess.discovery.folder_watchers import ChangeWatcher, WatchMethod
    from prowess.limits import Limits
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill

    Root = str | os.PathLike[str]

T = TypeVar("T")

_MAX_RELOADS = 3  # Each reload may find new links, whose folders are watched before it is loaded again.
_PLACE_OPTIONS = frozenset(("cwd", "home", "agents", "project", "user"))
"""The keywords of ``discover`` that say which places count."""


def watch(*roots: Root | Iterable[Root], every: float = 1.0, notice: WatchMethod = "auto", **options: Any) -> Watch:
    """Return an iterator of catalogues of the skills below ``roots``: the current one, then one after each change.

    Without roots, the standard places are watched. Use it in ``for`` or ``async for``; ``close()``, or the end of a
    ``with`` block, ends a loop that waits. ``notice`` says how changes are noticed: ``"watchfiles"`` (the extra
    ``watch``) or ``"stat"``, a look at every file ``every`` so many seconds. ``options`` are those of ``scan``, or of
    ``discover`` without roots.
    """
    return Watch(tuple(_flatten_roots(roots)), every=every, notice=notice, options=options)


def _flatten_roots(roots: Iterable[Root | Iterable[Root]]) -> Iterable[str]:
    for root in roots:
        if isinstance(root, str | os.PathLike):
            yield root_folder(root)
        else:
            yield from (root_folder(path) for path in root)


class Reloader(Generic[T]):
    """Loads something, and loads it again after every change below the folders that it depends on.

    ``load`` returns the thing; ``folders`` names the folders for it, and is asked with ``None`` before the first load.
    """

    def __init__(
        self,
        load: Callable[[], T],
        folders: Callable[[T | None], Iterable[str]],
        *,
        every: float = 1.0,
        notice: WatchMethod = "auto",
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._load = load
        self._folders = folders
        self._make_watcher = partial(watch_folders, every=every, notice=notice, limits=limits)
        self._lock = Lock()
        self._watcher: ChangeWatcher | None = None
        self._watched: tuple[str, ...] = ()
        self._closed = False

    def next(self) -> T | None:
        """Return the thing: at once the first time, later after the next change; ``None`` once it is closed."""
        watcher = self._watcher
        if watcher is None:
            self._watch_folders(self._folders(None))
        elif not watcher.wait():
            return None
        if self._closed:
            return None
        # A folder must be watched before it is read, or a change between the two is missed. So where loading shows that
        # other folders count, those are watched, and it is loaded again.
        for _ in range(_MAX_RELOADS):
            loaded = self._load()
            if not self._watch_folders(self._folders(loaded)):
                break
        return loaded

    def close(self) -> None:
        """End every wait; may be called from any thread."""
        self._closed = True
        with self._lock:
            if self._watcher is not None:
                self._watcher.stop()

    def _watch_folders(self, paths: Iterable[str]) -> bool:
        """Watch these folders from now on; return whether they are others than before."""
        wanted = tuple(dict.fromkeys(os.path.abspath(path) for path in paths))
        if wanted == self._watched:
            return False
        fresh = self._make_watcher(wanted)
        with self._lock:
            if self._watcher is not None:
                self._watcher.stop()
            self._watcher, self._watched = fresh, wanted
            if self._closed:  # in another thread, while the watcher was made
                fresh.stop()
        return True


class Watch:
    """An iterator and an asynchronous iterator of catalogues; for one loop at a time."""

    def __init__(self, roots: tuple[str, ...], *, every: float, notice: WatchMethod, options: dict[str, Any]) -> None:
        self._roots = roots
        self._options = options
        limits = options.get("limits") or DEFAULT_LIMITS
        self._reloader = Reloader(self._load, self._folders, every=every, notice=notice, limits=limits)

    def __repr__(self) -> str:
        """Show the folders."""
        return f"<Watch of {', '.join(self._roots) or 'the standard places'}>"

    def _load(self) -> Catalog:
        return scan(*self._roots, **self._options) if self._roots else discover(**self._options)

    def _folders(self, catalog: Catalog | None) -> Iterable[str]:
        chosen = {key: value for key, value in self._options.items() if key in _PLACE_OPTIONS}
        if self._roots:
            return (*self._roots, *linked_folders(catalog or ()))
        standard = resolve_standard_places(**chosen)
        places = [place.path for place in standard.places]
        return (*places, *standard.lock_files, *linked_folders(catalog or ()))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Catalog:
        catalog = self._reloader.next()
        if catalog is None:
            raise StopIteration
        return catalog

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Catalog:
        catalog = await run_in_thread(self._next_or_close)
        if catalog is None:
            raise StopAsyncIteration
        return catalog

    def _next_or_close(self) -> Catalog | None:
        with call_on_cancel(self.close):
            return self._reloader.next()

    def close(self) -> None:
        """End the loop; may be called from any thread."""
        self._reloader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def linked_folders(catalog: Iterable[Skill]) -> tuple[str, ...]:
    """Return the folders of skills that were reached through a link: watching the roots does not show changes there."""
    return tuple(sorted({skill.real_folder for skill in catalog if skill.is_linked}))
