"""A live catalogue: one for a whole process, kept in step with the disk, and with sources, by a thread."""

from __future__ import annotations

import os
from threading import Condition, Event, Thread, current_thread
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from prowess.errors import SourceError
from prowess.policy.files import bind_policy
from prowess.skills.catalog import Catalog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prowess.discovery.watch import Watch, WatchMethod, WatchOptions
    from prowess.literals import OnDuplicate
    from prowess.skills.skill import Skill
    from prowess.skills.source_list import SkillSource

    Root = str | os.PathLike[str]

_RETRY_SECONDS = 1.0
"""Seconds until the next try after a scan failed, because a scan that always fails must not keep a processor busy."""


_POLL_SECONDS = 60.0
"""Seconds between two looks at sources that cannot report a change."""
_UNREACHED = ("not fetched", "not reached")
"""How a source says of its place that nothing could be read there now."""


@overload
def live(
    *roots: Root | Iterable[Root],
    every: float | None = None,
    notice: WatchMethod = "auto",
    **options: Unpack[WatchOptions],
) -> Live: ...


@overload
def live(
    *roots: SkillSource | Root | Iterable[SkillSource | Root],
    every: float | None = None,
    on_duplicate: OnDuplicate = "first",
) -> Live: ...


def live(*roots: Any, every: float | None = None, **options: Any) -> Live:
    """Return a catalogue of the skills below ``roots``, or in the standard places, that a thread keeps up to date.

    ``Session(live)`` follows it. The keywords are those of ``watch``. Among ``roots`` may be sources: sites, MCP
    servers, git repositories, and sources of your own. Then everything is loaded again ``every`` 60 seconds, or as many
    as you say; a source that cannot be reached keeps the skills that it had. The first load is done when this returns,
    and raises here. ``close()``, or the end of a ``with`` block, ends the thread.
    """
    from prowess.discovery.watch import watch  # a session imports this module and may never watch anything

    flat = [each for root in roots for each in ((root,) if _is_one_root(root) else root)]
    if not any(hasattr(root, "load") for root in flat):
        return Live(watch(*flat, every=1.0 if every is None else every, **options))
    unknown = sorted(options.keys() - {"on_duplicate"})
    if unknown:
        raise SourceError(f"live takes no {unknown[0]} with sources: give it to Source.directory(…)")
    return Live(Polling(flat, _POLL_SECONDS if every is None else every, options.get("on_duplicate", "first")))


def _is_one_root(root: object) -> bool:
    return isinstance(root, (str, os.PathLike)) or hasattr(root, "load")


class Polling:
    """An iterator of the catalogues of sources: the current one, then one after each load that differs."""

    def __init__(self, sources: Iterable[SkillSource | Root], every: float, on_duplicate: OnDuplicate) -> None:
        self._sources = [_FollowedSource(source) for source in sources]
        self._every = every
        self._on_duplicate: OnDuplicate = on_duplicate
        self._closed = Event()
        self._seen: object = None

    def __repr__(self) -> str:
        return f"<Polling of {', '.join(map(repr, self._sources))}>"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Catalog:
        while self._seen is None or not self._closed.wait(self._every):
            catalog = Catalog.from_sources(self._sources, self._on_duplicate)
            seen = [(skill.name, skill.location, skill.state) for skill in catalog.skills]
            if seen != self._seen:
                self._seen = seen
                return catalog
        raise StopIteration

    def close(self) -> None:
        """End the iteration; may be called from any thread."""
        self._closed.set()


class _FollowedSource:
    """A source that keeps the skills that it had while it cannot be reached."""

    def __init__(self, source: SkillSource | Root) -> None:
        self._source = source
        self._last: Catalog | None = None

    def __repr__(self) -> str:
        return repr(self._source)

    def load(self) -> Catalog:
        if isinstance(self._source, (str, os.PathLike)):
            from prowess.discovery.scan import scan

            return scan(self._source)
        try:
            loaded = self._source.load()
        except Exception:
            if self._last is None:
                raise
            import logging

            logging.getLogger("prowess").warning("%r could not be loaded again", self._source, exc_info=True)
            return self._last
        if self._last is not None and any(place.state in _UNREACHED for place in loaded.places):
            return Catalog(self._last.skills, issues=loaded.issues, places=self._last.places)
        self._last = loaded
        return loaded


class Live:
    """A catalogue that is replaced as a whole after every change; a catalogue itself never changes.

    ``live["name"]``, ``"name" in live``, ``len(live)`` and iteration ask the current catalogue. Keep ``live.catalog``
    to ask several questions about one state.
    """

    def __init__(self, catalogs: Watch | Polling) -> None:
        self._catalogs = catalogs
        self._changed = Condition()
        self._closed = Event()
        try:
            self._catalog = next(catalogs)
        except BaseException:
            catalogs.close()  # it has begun to watch the folders already
            raise
        self._thread = Thread(target=bind_policy(self._follow_changes), name="prowess-live", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        """Show the folders, and how many skills there are."""
        return f"<Live of {self._catalogs!r}: {len(self._catalog)} skills>"

    @property
    def catalog(self) -> Catalog:
        """The current catalogue; after ``close``, the last one."""
        return self._catalog

    def __len__(self) -> int:
        return len(self._catalog)

    def __contains__(self, name: object) -> bool:
        return name in self._catalog

    def __getitem__(self, name: str) -> Skill:
        """Return the skill with that name in the current catalogue; raise ``UnknownSkillError`` when there is none."""
        return self._catalog[name]

    def __iter__(self) -> Iterator[Skill]:
        """Iterate over the skills of the current catalogue; a change meanwhile does not mix two catalogues."""
        return iter(self._catalog)

    def wait_for_change(self, seen: Catalog, timeout: float | None = None) -> Catalog:
        """Return the current catalogue once it is another than ``seen``, the time is over, or it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._catalog is not seen or self._closed.is_set(), timeout)
        return self._catalog

    def close(self) -> None:
        """End the thread; the catalogue stays as it is."""
        self._closed.set()
        self._catalogs.close()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _follow_changes(self) -> None:
        while not self._closed.is_set():
            try:
                fresh = next(self._catalogs, None)
            except Exception as error:  # noqa: BLE001 - whatever a scan raises, the last good catalogue stays in use
                self._log_failure(error)
                self._closed.wait(_RETRY_SECONDS)
                continue
            if fresh is None:
                return
            with self._changed:
                self._catalog = fresh
                self._changed.notify_all()
            del fresh  # Waiting for the next change must not keep this catalogue in memory.

    def _log_failure(self, error: Exception) -> None:
        import logging  # a session imports this module, and most programs never follow anything

        logging.getLogger("prowess").error("%r could not be read again", self._catalogs, exc_info=error)
