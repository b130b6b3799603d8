"""A catalogue that keeps up with its folders: a new one after every change, for loops of both kinds."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from prowess.library.changes import changes_below
from prowess.library.scan import discover, scan, standard
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.library.catalog import Catalog
    from prowess.library.changes import Changes, Notice
    from prowess.library.skill import Skill

    Root = str | os.PathLike[str]

_SETTLED = 3


def watch(*roots: Root | Iterable[Root], every: float = 1.0, notice: Notice = "auto", **options: Any) -> Watch:  # noqa: ANN401 - scan's keywords
    """Catalogues of what lies below ``roots`` (none: the standard places): the one of now, then one after each change.

    To be used in ``for`` or ``async for``; ``close()``, or the end of a ``with`` block, ends a loop that waits.
    ``notice``: how changes are noticed, ``"watchfiles"`` (the extra ``watch``) or ``"stat"``, a look at every file
    ``every`` so many seconds. ``options`` are those of ``scan``, or of ``discover`` without roots.
    """
    return Watch(tuple(_flat(roots)), every=every, notice=notice, options=options)


def _flat(roots: Iterable[Root | Iterable[Root]]) -> Iterable[str]:
    for root in roots:
        if isinstance(root, str | os.PathLike):
            yield os.fspath(root)
        else:
            yield from (os.fspath(one) for one in root)


class Watch:
    """An iterator and an asynchronous iterator of catalogues; for one loop at a time."""

    def __init__(self, roots: tuple[str, ...], *, every: float, notice: Notice, options: dict[str, Any]) -> None:
        self._roots = roots
        self._every = every
        self._notice = notice
        self._options = options
        self._lock = Lock()
        self._changes: Changes | None = None
        self._watched: tuple[str, ...] = ()
        self._closed = False

    def __repr__(self) -> str:
        """The folders."""
        return f"<Watch of {', '.join(self._roots) or 'the standard places'}>"

    # -- loops -------------------------------------------------------------------------------------------------------

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Catalog:
        found = self._next()
        if found is None:
            raise StopIteration
        return found

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Catalog:
        import asyncio  # noqa: PLC0415 - only asynchronous programs need it

        try:
            found = await asyncio.to_thread(self._next)
        except asyncio.CancelledError:
            self.close()  # the thread ends as well
            raise
        if found is None:
            raise StopAsyncIteration
        return found

    def close(self) -> None:
        """End the loop, from whatever thread."""
        self._closed = True
        with self._lock:
            if self._changes is not None:
                self._changes.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    # -- one step ----------------------------------------------------------------------------------------------------

    def _next(self) -> Catalog | None:
        """The next catalogue; ``None`` once it is closed."""
        changes = self._changes
        if changes is None:
            self._arm(self._folders())
        elif not changes.wait():
            return None
        if self._closed:
            return None
        for _ in range(_SETTLED):
            found = self._load()
            if not self._arm((*self._folders(), *linked_folders(found))):
                break  # what is watched was watched before it was read
        return found

    def _load(self) -> Catalog:
        return scan(*self._roots, **self._options) if self._roots else discover(**self._options)

    def _folders(self) -> tuple[str, ...]:
        if self._roots:
            return self._roots
        chosen = {key: value for key, value in self._options.items() if key != "limits"}
        return tuple(place.path for place in standard(**chosen)[0])

    def _arm(self, paths: Iterable[str]) -> bool:
        """Watch these folders from now on; whether they are others than before."""
        wanted = tuple(dict.fromkeys(os.path.abspath(path) for path in paths))
        if wanted == self._watched:
            return False
        limits = self._options.get("limits") or DEFAULT_LIMITS
        fresh = changes_below(wanted, every=self._every, notice=self._notice, limits=limits)
        with self._lock:
            if self._changes is not None:
                self._changes.stop()
            self._changes, self._watched = fresh, wanted
            if self._closed:
                fresh.stop()
        return True


def linked_folders(catalog: Iterable[Skill]) -> tuple[str, ...]:
    """The folders of skills that were reached through a link: what changes there, no watch of the roots sees."""
    return tuple(sorted({skill.real_folder for skill in catalog if skill.is_linked}))
