"""A live catalogue: one for a whole process, kept in step with the disk by a thread."""

from __future__ import annotations

from threading import Condition, Event, Thread, current_thread
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from prowess.discovery.watch import Watch, WatchMethod
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill

    Root = str | os.PathLike[str]

_RETRY_SECONDS = 1.0
"""Seconds until the next try after a scan failed, because a scan that always fails must not keep a processor busy."""


def live(*roots: Root | Iterable[Root], every: float = 1.0, notice: WatchMethod = "auto", **scan: Any) -> Live:
    """Return a catalogue of the skills below ``roots``, or in the standard places, that a thread keeps up to date.

    ``Session(live)`` follows it. The keywords are those of ``watch``. The first scan is done when this returns, and
    raises here. ``close()``, or the end of a ``with`` block, ends the thread.
    """
    from prowess.discovery.watch import watch  # a session imports this module and may never watch anything

    return Live(watch(*roots, every=every, notice=notice, **scan))


class Live:
    """A catalogue that is replaced as a whole after every change; a catalogue itself never changes.

    ``live["name"]``, ``"name" in live``, ``len(live)`` and iteration ask the current catalogue. Keep ``live.catalog``
    to ask several questions about one state.
    """

    def __init__(self, catalogs: Watch) -> None:
        self._catalogs = catalogs
        self._changed = Condition()
        self._closed = Event()
        try:
            self._catalog = next(catalogs)
        except BaseException:
            catalogs.close()  # it has begun to watch the folders already
            raise
        self._thread = Thread(target=self._follow_changes, name="prowess-live", daemon=True)
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
        """Return the skill of that name in the current catalogue; raise ``UnknownSkillError`` when there is none."""
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
        import logging

        logging.getLogger("prowess").error("%r could not be read again", self._catalogs, exc_info=error)
