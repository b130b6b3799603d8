"""One catalogue of a process that keeps up with the disk, for any number of sessions."""

from __future__ import annotations

from threading import Condition, Event, Thread, current_thread
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from prowess.discovery.file_changes import WatchMethod
    from prowess.discovery.watch import Watch
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill

    Root = str | os.PathLike[str]

_RETRY_SECONDS = 1.0
"""Seconds until the next try after a scan failed: one that always fails must not keep a processor busy."""


def live(*roots: Root | Iterable[Root], every: float = 1.0, notice: WatchMethod = "auto", **scan: Any) -> Live:  # noqa: ANN401 - scan's keywords
    """The catalogue of what lies below ``roots`` (none: the standard places), kept in step with the disk by a thread.

    ``Session(live)`` follows it. The keywords are those of ``watch``. The first scan is done when this returns; what it
    raises is raised here. ``close()``, or the end of a ``with`` block, ends the thread.
    """
    from prowess.discovery.watch import watch  # noqa: PLC0415 - sessions know this module and need not watch

    return Live(watch(*roots, every=every, notice=notice, **scan))


class Live:
    """A catalogue that is replaced as a whole after every change; each of them stays what it was.

    ``live["name"]``, ``"name" in live``, ``len(live)`` and iteration ask the catalogue of now; for several questions
    about one state, keep ``live.catalog``.
    """

    def __init__(self, catalogs: Watch) -> None:
        self._catalogs = catalogs
        self._changed = Condition()
        self._closed = Event()
        try:
            self._catalog = next(catalogs)
        except BaseException:
            catalogs.close()  # what watches the folders ends with it
            raise
        self._thread = Thread(target=self._follow_changes, name="prowess-live", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        """What is watched, and how many skills there are."""
        return f"<Live of {self._catalogs!r}: {len(self._catalog)} skills>"

    @property
    def catalog(self) -> Catalog:
        """The catalogue of now; after ``close``, the last one."""
        return self._catalog

    def __len__(self) -> int:
        return len(self._catalog)

    def __contains__(self, name: object) -> bool:
        return name in self._catalog

    def __getitem__(self, name: str) -> Skill:
        """The skill of that name in the catalogue of now; raises ``UnknownSkillError`` where it has none."""
        return self._catalog[name]

    def __iter__(self) -> Iterator[Skill]:
        """The skills of the catalogue of now, all of one catalogue, whatever changes meanwhile."""
        return iter(self._catalog)

    def wait_for_change(self, seen: Catalog, timeout: float | None = None) -> Catalog:
        """The catalogue as soon as it is another than ``seen``; as it is once the time is over, or it was closed."""
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
            except Exception as error:  # noqa: BLE001 - whatever a scan meets, the last good catalogue serves on
                self._log_failure(error)
                self._closed.wait(_RETRY_SECONDS)
                continue
            if fresh is None:
                return
            with self._changed:
                self._catalog = fresh
                self._changed.notify_all()
            del fresh  # waiting for the next change must not keep this catalogue alive

    def _log_failure(self, error: Exception) -> None:
        import logging  # noqa: PLC0415 - only when something failed

        logging.getLogger("prowess").error("%r could not be read again", self._catalogs, exc_info=error)
