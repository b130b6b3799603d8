"""Watching folders: waiting until something changes, and a new catalogue after every change."""

from __future__ import annotations

import os
import time
from functools import partial
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypedDict, TypeVar, Unpack

from prowess.discovery.scan import discover, resolve_standard_places, root_folder, scan
from prowess.errors import SourceError
from prowess.files.identity import fingerprint_tree, is_watched_folder, watched_identity
from prowess.hints import explain_extra
from prowess.installed.policy_check import find_revoked
from prowess.limits import DEFAULT_LIMITS
from prowess.policy.files import current_policy, list_policy_files
from prowess.thread_work import call_on_cancel, run_in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prowess.discovery.scan import OnIssue
    from prowess.limits import Limits
    from prowess.literals import FollowLinks, Mode, OnDuplicate, Severity
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill

    Root = str | os.PathLike[str]


T = TypeVar("T")

_MAX_RELOADS = 3  # Each reload may find new links, whose folders are watched before it is loaded again.
_PLACE_OPTIONS = frozenset(("cwd", "home", "agents", "project", "user"))
"""The keywords of ``discover`` that say which places count."""


class WatchOptions(TypedDict, total=False):
    """The keywords of ``scan``, and those of ``discover``, which count where no root is named."""

    mode: Mode
    repair: bool
    missing: Literal["ignore", "error"]
    max_depth: int | None
    nested: bool
    skip_prefixes: Sequence[str]
    filename: str
    on_duplicate: OnDuplicate
    follow_links: FollowLinks
    invalid: Literal["load", "skip"]
    check_dir: bool
    on_issue: OnIssue | None
    on_issue_from: Severity
    limits: Limits | None
    cwd: str | os.PathLike[str] | None
    home: str | os.PathLike[str] | None
    agents: Iterable[str] | None
    project: bool
    verify: Literal["lock"] | None
    user: bool


def watch(
    *roots: Root | Iterable[Root], every: float = 1.0, notice: WatchMethod = "auto", **options: Unpack[WatchOptions]
) -> Watch:
    """Return an iterator of catalogues of the skills below ``roots``: the current one, then one after each change.

    Without roots, the standard places are watched. Use it in ``for`` or ``async for``; ``close()``, or the end of a
    ``with`` block, ends a loop that waits. ``notice`` says how changes are noticed: ``"watchfiles"`` (the extra
    ``watch``) or ``"stat"``, a look at every file ``every`` so many seconds. ``options`` are those of ``scan``, or of
    ``discover`` without roots.
    """
    return Watch(tuple(_flatten_roots(roots)), every=every, notice=notice, options={**options})


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
        self._watcher: _ChangeWatcher | None = None
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
        catalog = scan(*self._roots, **self._options) if self._roots else discover(**self._options)
        revoked = find_revoked(catalog, current_policy())
        return catalog.without(revoked) if revoked else catalog

    def _folders(self, catalog: Catalog | None) -> Iterable[str]:
        chosen = {key: value for key, value in self._options.items() if key in _PLACE_OPTIONS}
        # A revocation counts at once: the files of the policy are watched like skills.
        policy_files = list_policy_files()
        if self._roots:
            return (*self._roots, *policy_files, *linked_folders(catalog or ()))
        standard = resolve_standard_places(**chosen)
        places = [place.path for place in standard.places]
        return (*places, *standard.lock_files, *policy_files, *linked_folders(catalog or ()))

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
    return tuple(sorted({skill.real_folder for skill in catalog if skill.found.link_folder is not None}))


WatchMethod = Literal["auto", "watchfiles", "stat"]

_POLL_REST_FACTOR = 10  # Looking at every file takes at most about a tenth of one processor.
_DEBOUNCE_MS = 200
_STEP_MS = 20
_TIMEOUT_MS = 50  # The first answer of the system shows that it listens now, so it must come soon.


class _ChangeWatcher(Protocol):
    """What waits for changes below some folders."""

    def wait(self) -> bool:
        """Wait, and return ``True`` after the next change since the last call, ``False`` once ``stop`` was called."""
        ...

    def stop(self) -> None:
        """End every wait; may be called from any thread."""
        ...


def watch_folders(paths: Sequence[str], *, every: float, notice: WatchMethod, limits: Limits) -> _ChangeWatcher:
    """Return what waits for changes below folders, or of single files, which need not exist yet.

    Raises ``SourceError`` for an unknown ``notice``, and for ``"watchfiles"`` when that package is not installed.
    """
    if notice not in {"auto", "watchfiles", "stat"}:
        raise SourceError(f"notice must be 'auto', 'watchfiles' or 'stat', not {notice!r}")
    if notice != "stat" and _has_watchfiles():
        return _NativeWatcher(paths, every=every, limits=limits)
    if notice == "watchfiles":
        raise SourceError(f"watchfiles is not installed: {explain_extra('watch')}", code="missing-extra")
    return _PollingWatcher(paths, every=every, limits=limits)


def _has_watchfiles() -> bool:
    from importlib.util import find_spec

    return find_spec("watchfiles") is not None


class _PollingWatcher:
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


class _NativeWatcher:
    """Gets changes from the system, and looks itself for folders that come, go or are replaced."""

    def __init__(self, paths: Sequence[str], *, every: float, limits: Limits) -> None:
        self._paths = tuple(paths)
        self._every = every
        self._limits = limits
        self._stop = Event()
        self._events: Iterator[set[tuple[Any, str]]] | None = None
        self._replaced = False
        """Whether the system reported a watched folder itself: another may be there now, even with its inode."""
        self._fallback: _PollingWatcher | None = None
        self._has_early_change = False
        self._subscribe()

    def _subscribe(self) -> None:
        """Get everything that happens from now on."""
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
            self._fallback = _PollingWatcher(self._paths, every=self._every, limits=self._limits)

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
        """Return whether the system reported a change before its timeout."""
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
