"""Keeping what is offered in step with the disk: one offer at a time, replaced as a whole, announced afterwards."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.scan import find, standard
from prowess.discovery.walk import Rules
from prowess.discovery.watch import Following, linked_folders
from prowess.errors import SkillError
from prowess.files.directory import Folder
from prowess.limits import DEFAULT_LIMITS
from prowess.mcp.handlers import Answers
from prowess.mcp.manifests import Manifests
from prowess.mcp.options import ServeOptions, root_folders
from prowess.mcp.prompts import Prompts
from prowess.mcp.served_skills import Shelf, build_shelf, shelf_of
from prowess.mcp.tools import ModelTools
from prowess.mcp.uris import SKILL_MD, uri_of
from prowess.model import Place
from prowess.spec.document import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prowess.discovery.file_changes import Notice
    from prowess.limits import Limits
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill

    Announce = Callable[["News"], None]
    Hear = Callable[["Work", "Made"], None]

logger = logging.getLogger("prowess.mcp")

_DEFAULT_OPTIONS = ServeOptions()
_MOST_NEWS = 1_000
_PATIENCE = 5.0


class Offer(NamedTuple):
    """Everything that is answered from one shelf."""

    answers: Answers
    tools: ModelTools
    prompts: Prompts

    @property
    def shelf(self) -> Shelf:
        return self.answers.shelf


class News(NamedTuple):
    """What a new offer changed for clients."""

    tools: bool
    prompts: bool
    updated: tuple[str, ...]
    """The addresses of files that are not what they were."""
    listed_before: tuple[Skill, ...] = ()
    """The skills that models were told of before."""


class Loader:
    """How the shelf is loaded: from folders that are named, or from the standard places."""

    def __init__(self, roots: tuple[str, ...], limits: Limits) -> None:
        self._roots = roots
        self._limits = limits
        self._rules = Rules(Policy(limits=limits), nested=True)

    def load(self) -> Shelf:
        places, allowed = self._places()
        return build_shelf(find(places, self._rules, allowed=allowed), self._limits)

    def folders(self, shelf: Shelf | None) -> Iterable[str]:
        """What to watch."""
        linked = linked_folders(shelf.skills.values()) if shelf is not None else ()
        return (*(place.path for place in self._places()[0]), *linked)

    def is_small(self) -> bool:
        """True when so few files and folders lie in the places that loading them takes a moment, however busy all is.

        They are counted, and no clock is looked at: whether a client waits for its listing does not depend on chance.
        """
        left = self._limits.max_awaited_entries
        waiting = [place.path for place in self._places()[0]]
        while waiting:
            try:
                with Folder(waiting.pop()) as folder:
                    entries = folder.entries(left)
            except OSError:  # it is not there, or cannot be looked at, and then it costs nothing
                continue
            left -= sum(map(len, entries[:-1]))
            if left <= 0 or not entries.complete:
                return False
            waiting += [os.path.join(folder.path, name) for name in entries.folders]
        return True

    def _places(self) -> tuple[tuple[Place, ...], tuple[str, ...] | None]:
        if self._roots:
            return tuple(Place(root) for root in self._roots), None
        return standard()


class Work:
    """The thread behind a keeper, and who hears of what it makes."""

    def __init__(self, work: Callable[[Work], None], hear: Hear) -> None:
        self.following: Following[Shelf] | None = None
        self.is_over = False
        self._work = work
        self.give = partial(hear, self)
        self.thread = Thread(target=self._run, name="prowess-keeper", daemon=True)
        self.thread.start()

    def close(self) -> None:
        """End it, soon."""
        self.is_over = True
        if self.following is not None:
            self.following.close()

    def _run(self) -> None:
        try:
            self._work(self)
        except BaseException as error:
            self.give(Made(None, None, error))
            raise


class Made(NamedTuple):
    """An offer and what is new in it, or the error that kept one from being made."""

    offer: Offer | None
    news: News | None = None
    error: BaseException | None = None


class Keeper:
    """Loads the shelf in a thread of its own, and again after every change; asked from one event loop at a time."""

    def __init__(self, loader: Loader | Shelf, limits: Limits, options: ServeOptions, *, notice: Notice | None) -> None:
        self._loader = loader
        self._limits = limits
        self._options = options
        self._notice: Notice | None = notice
        self._manifests = Manifests(limits)
        self._users = 0
        self._work: Work | None = None
        self._first: asyncio.Future[None] | None = None
        self._offer: Offer | None = None
        self._swapped = asyncio.Event()
        self._looks = asyncio.Lock()
        self._next_look: asyncio.Task[Offer | None] | None = None
        self.announce: Announce | None = None
        self._loaded: Callable[[Shelf], None] | None = None

    # -- from the event loop -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load for this event loop; every start needs a stop."""
        self._users += 1
        if self._users > 1:
            return
        loop = asyncio.get_running_loop()
        self._looks, self._next_look = asyncio.Lock(), None
        self._first = loop.create_future()
        self._first.add_done_callback(lambda future: future.cancelled() or future.exception())

        def hear(work: Work, made: Made) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it everybody who could ask
                loop.call_soon_threadsafe(self._heard, work, made)

        self._work = Work(self._keep, hear)

    async def stop(self) -> None:
        """End watching."""
        self._users -= 1
        if self._users or self._work is None:
            return
        work, self._work, self._offer = self._work, None, None
        work.close()
        await asyncio.to_thread(work.thread.join, 5)

    async def offer(self) -> Offer:
        """What is offered now; waits for the first load."""
        if self._offer is None:
            assert self._first is not None  # noqa: S101 - a request comes after the start
            await asyncio.shield(self._first)
        assert self._offer is not None  # noqa: S101 - set before the future
        return self._offer

    async def newer(self, than: Offer) -> Offer | None:
        """What is offered once that is no more; ``None`` where nobody watches, or nothing comes in time."""
        if self._work is None or self._work.following is None:
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE + self._limits.watch_seconds):
                while self._offer is than:
                    await self._swapped.wait()
                return self._offer
        return None

    async def look(self) -> Offer | None:
        """An offer of what lies on the disk now, loaded after this was asked; ``None`` where nobody watches.

        Changes are noticed some time after they happen, so what this offers may not have been announced yet. Loads run
        one at a time, and everybody who asks during one shares the next.
        """
        if self._work is None or self._work.following is None or isinstance(self._loader, Shelf):
            return None
        known = await self.offer()
        if self._next_look is None:
            self._next_look = asyncio.create_task(self._look(self._loader, known))
        return await asyncio.shield(self._next_look)

    async def _look(self, loader: Loader, known: Offer) -> Offer | None:
        async with self._looks:
            self._next_look = None  # whoever asks from here on may ask about something that this load does not see
            try:
                shelf = await asyncio.to_thread(loader.load)
            except Exception:
                logger.exception("the skills could not be loaded again; answered from what was loaded before")
                return None
        shelf.remember_names(known.shelf)
        return self._make_offer(shelf)

    async def settle(self, seconds: float) -> Offer | None:
        """What is offered: waited for where little has to be loaded, else ``None`` if it is not there in time."""
        if self._offer is not None or await asyncio.to_thread(self._is_small):
            return await self.offer()
        try:
            return await asyncio.wait_for(self.offer(), seconds)
        except TimeoutError:
            return None

    def _is_small(self) -> bool:
        return isinstance(self._loader, Shelf) or self._loader.is_small()

    def _heard(self, work: Work, made: Made) -> None:
        if work is not self._work or self._first is None:
            return
        self._offer = made.offer or self._offer
        swapped, self._swapped = self._swapped, asyncio.Event()
        swapped.set()
        if not self._first.done():
            if made.error is None:
                self._first.set_result(None)
                self._tell_loaded()
            else:
                self._first.set_exception(made.error)
        if made.news is not None and self.announce is not None:
            self.announce(made.news)

    def when_loaded(self, told: Callable[[Shelf], None]) -> None:
        """Call ``told`` with the first shelf, once: now if it is there."""
        self._loaded = told
        self._tell_loaded()

    def _tell_loaded(self) -> None:
        if self._loaded is not None and self._offer is not None:
            told, self._loaded = self._loaded, None
            told(self._offer.shelf)

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _keep(self, work: Work) -> None:
        if isinstance(self._loader, Shelf) or self._notice is None:
            shelf = self._loader if isinstance(self._loader, Shelf) else self._loader.load()
            work.give(Made(self._offered(shelf)))
            return
        work.following = following = Following(
            self._loader.load,
            self._loader.folders,
            every=self._limits.watch_seconds,
            notice=self._notice,
            limits=self._limits,
        )
        before: Offer | None = None
        while not work.is_over:
            try:
                found = following.next()
            except Exception:
                if before is None:
                    raise
                logger.exception("the skills could not be loaded again; the next change is another chance")
                continue
            if found is None:
                break
            if before is not None:
                found.remember_names(before.shelf)
            fresh = self._offered(found)
            work.give(Made(fresh, None if before is None else self._news(before, fresh)))
            before = fresh
        following.close()

    def _offered(self, shelf: Shelf) -> Offer:
        self._manifests.keep_only(shelf.skills.values())
        return self._make_offer(shelf)

    def _make_offer(self, shelf: Shelf) -> Offer:
        tools = ModelTools(shelf, self._options)
        answers = Answers(shelf, self._manifests, self._limits)
        return Offer(answers, tools, Prompts(shelf, tools, self._limits))

    def _news(self, old: Offer, new: Offer) -> News:
        updated = [uri for path, skill in new.shelf.skills.items() for uri in self._updated(path, skill, old.shelf)]
        tools = old.tools.definitions != new.tools.definitions
        prompts = old.prompts.names != new.prompts.names
        return News(tools, prompts, tuple(updated[:_MOST_NEWS]), old.tools.listed)

    def _updated(self, path: str, skill: Skill, old: Shelf) -> list[str]:
        """The files of a skill that are not what was told of them; its SKILL.md where nothing was told."""
        told = self._manifests.known(skill)
        if told is None:
            before = old.skills.get(path)
            same = before is not None and before.identity == skill.identity
            return [] if same else [uri_of(path, SKILL_MD)]
        try:
            now = self._manifests.of(skill)
        except SkillError:
            return [uri_of(path, SKILL_MD)]
        if now is told:
            return []
        digests = {file.path: file.hashed.digest for file in told.files}
        return [uri_of(path, file.path) for file in now.files if digests.get(file.path) != file.hashed.digest]


def keeper_of(
    roots: Iterable[str | os.PathLike[str]],
    catalog: Catalog | None = None,
    limits: Limits = DEFAULT_LIMITS,
    options: ServeOptions = _DEFAULT_OPTIONS,
    *,
    notice: Notice | None = "auto",
) -> Keeper:
    """A keeper of what lies below folders (none: the standard places), or of a catalogue."""
    loader = Loader(root_folders(roots), limits) if catalog is None else shelf_of(catalog, limits)
    return Keeper(loader, limits, options, notice=notice)
