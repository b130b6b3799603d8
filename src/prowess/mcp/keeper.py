"""Keeping what is offered in step with the disk: one offer at a time, replaced as a whole, announced afterwards."""

from __future__ import annotations

import asyncio
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import SkillError
from prowess.library.scan import find, standard
from prowess.library.walk import Rules
from prowess.library.watch import Following, linked_folders
from prowess.mcp.answers import Answers
from prowess.mcp.manifests import Manifests
from prowess.mcp.prompts import Prompts
from prowess.mcp.shelf import Shelf, build_shelf
from prowess.mcp.tools import ModelTools
from prowess.mcp.uris import SKILL_MD, uri_of
from prowess.model import Place
from prowess.spec.document import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prowess.library.changes import Notice
    from prowess.library.skill import Skill
    from prowess.limits import Limits

    Announce = Callable[["News"], None]

_MOST_NEWS = 1_000


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


class Loader:
    """How the shelf is loaded: from folders that are named, or from the standard places."""

    def __init__(self, roots: tuple[str, ...], limits: Limits) -> None:
        self._roots = roots
        self._rules = Rules(Policy(limits=limits), nested=True)

    def load(self) -> Shelf:
        places, allowed = self._places()
        return build_shelf(find(places, self._rules, allowed=allowed))

    def folders(self, shelf: Shelf | None) -> Iterable[str]:
        """What to watch."""
        linked = linked_folders(shelf.skills.values()) if shelf is not None else ()
        return (*(place.path for place in self._places()[0]), *linked)

    def _places(self) -> tuple[tuple[Place, ...], tuple[str, ...] | None]:
        if self._roots:
            return tuple(Place(root) for root in self._roots), None
        return standard()


class Keeper:
    """Loads the shelf in a thread of its own, and again after every change; asked from one event loop."""

    def __init__(
        self, loader: Loader | Shelf, limits: Limits, *, budget: int | None, show_folders: bool, notice: Notice | None
    ) -> None:
        self._loader = loader
        self._limits = limits
        self._budget = budget
        self._show_folders = show_folders
        self._notice: Notice | None = notice
        self._manifests = Manifests(limits)
        self._users = 0
        self._first: asyncio.Future[Offer] | None = None
        self._offer: Offer | None = None
        self._following: Following[Shelf] | None = None
        self._thread: Thread | None = None
        self.announce: Announce | None = None

    # -- from the event loop -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load; every start needs a stop."""
        self._users += 1
        if self._users > 1:
            return
        loop = asyncio.get_running_loop()
        self._first = loop.create_future()
        self._first.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._thread = Thread(target=self._run, args=(loop,), name="prowess-keeper", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """End watching."""
        self._users -= 1
        if self._users:
            return
        following, thread = self._following, self._thread
        self._thread = None
        if following is not None:
            following.close()
        if thread is not None:
            await asyncio.to_thread(thread.join, 5)

    async def offer(self) -> Offer:
        """What is offered now; waits for the first load."""
        if self._offer is None:
            assert self._first is not None  # noqa: S101 - a request comes after the start
            await asyncio.shield(self._first)
        assert self._offer is not None  # noqa: S101 - set before the future
        return self._offer

    async def settle(self, seconds: float) -> Offer | None:
        """What is offered, if it is there within the time."""
        try:
            return await asyncio.wait_for(self.offer(), seconds)
        except TimeoutError:
            return None

    def _swap(self, offer: Offer, news: News | None) -> None:
        self._offer = offer
        if self._first is not None and not self._first.done():
            self._first.set_result(offer)
        if news is not None and self.announce is not None:
            self.announce(news)

    def _fail(self, error: BaseException) -> None:
        if self._first is not None and not self._first.done():
            self._first.set_exception(error)

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._keep(loop)
        except RuntimeError:
            if not loop.is_closed():
                raise
        except BaseException as error:
            loop.call_soon_threadsafe(self._fail, error)
            raise

    def _keep(self, loop: asyncio.AbstractEventLoop) -> None:
        if isinstance(self._loader, Shelf):
            loop.call_soon_threadsafe(self._swap, self._offered(self._loader), None)
            return
        if self._notice is None:
            loop.call_soon_threadsafe(self._swap, self._offered(self._loader.load()), None)
            return
        following = Following(
            self._loader.load,
            self._loader.folders,
            every=self._limits.watch_seconds,
            notice=self._notice,
            limits=self._limits,
        )
        self._following = following
        before: Offer | None = None
        while self._thread is not None and (shelf := following.next()) is not None:
            fresh = self._offered(shelf)
            news = None if before is None else self._news(before, fresh)
            loop.call_soon_threadsafe(self._swap, fresh, news)
            before = fresh
        following.close()

    def _offered(self, shelf: Shelf) -> Offer:
        self._manifests.keep_only(shelf.skills.values())
        tools = ModelTools(shelf, budget=self._budget, show_folders=self._show_folders)
        answers = Answers(shelf, self._manifests, self._limits)
        return Offer(answers, tools, Prompts(shelf, tools, self._limits))

    def _news(self, old: Offer, new: Offer) -> News:
        updated = [uri for path, skill in new.shelf.skills.items() for uri in self._updated(path, skill, old.shelf)]
        tools = old.tools.definitions != new.tools.definitions
        return News(tools, old.prompts.names != new.prompts.names, tuple(updated[:_MOST_NEWS]))

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
