"""Keeping what is offered in step with the disk: one offer at a time, replaced as a whole, announced afterwards."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.scan import find_skills, resolve_standard_places
from prowess.discovery.scan_rules import ScanRules
from prowess.discovery.watch import Reloader, linked_folders
from prowess.errors import SkillError
from prowess.files.directory import Folder
from prowess.limits import DEFAULT_LIMITS
from prowess.mcp.handlers import SkillHandlers
from prowess.mcp.manifests import ManifestCache
from prowess.mcp.options import ServeOptions, resolve_roots
from prowess.mcp.prompts import Prompts
from prowess.mcp.served_skills import ServedSkills, build_from_catalog, build_from_scan
from prowess.mcp.tools import ModelTools
from prowess.mcp.uris import SKILL_FILE, make_uri
from prowess.model import Place
from prowess.spec.document import LoadPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prowess.discovery.file_changes import WatchMethod
    from prowess.limits import Limits
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill

    AnnounceChanges = Callable[["SnapshotChanges"], None]
    DeliverResult = Callable[["LoadThread", "LoadResult"], None]

logger = logging.getLogger("prowess.mcp")

_DEFAULT_OPTIONS = ServeOptions()
_MAX_UPDATED_URIS = 1_000
_RELOAD_SECONDS = 5.0


class ServerSnapshot(NamedTuple):
    """Everything that is answered from one shelf."""

    handlers: SkillHandlers
    tools: ModelTools
    prompts: Prompts

    @property
    def served(self) -> ServedSkills:
        return self.handlers.served


class SnapshotChanges(NamedTuple):
    """What a new offer changed for clients."""

    tools: bool
    prompts: bool
    updated_uris: tuple[str, ...]
    """The addresses of files that are not what they were."""
    listed_before: tuple[Skill, ...] = ()
    """The skills that models were told of before."""


class SkillLoader:
    """How the shelf is loaded: from folders that are named, or from the standard places."""

    def __init__(self, roots: tuple[str, ...], limits: Limits) -> None:
        self._roots = roots
        self._limits = limits
        self._rules = ScanRules(LoadPolicy(limits=limits), nested=True)

    def load(self) -> ServedSkills:
        places, allowed = self._places()
        return build_from_scan(find_skills(places, self._rules, allowed=allowed), self._limits)

    def watched_folders(self, shelf: ServedSkills | None) -> Iterable[str]:
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
                    entries = folder.list_entries(left)
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
        return resolve_standard_places()


class LoadThread:
    """The thread behind a keeper, and who hears of what it makes."""

    def __init__(self, work: Callable[[LoadThread], None], hear: DeliverResult) -> None:
        self.following: Reloader[ServedSkills] | None = None
        self.is_closed = False
        self._work = work
        self.deliver = partial(hear, self)
        self.thread = Thread(target=self._run, name="prowess-keeper", daemon=True)
        self.thread.start()

    def close(self) -> None:
        """End it, soon."""
        self.is_closed = True
        if self.following is not None:
            self.following.close()

    def _run(self) -> None:
        try:
            self._work(self)
        except BaseException as error:
            self.deliver(LoadResult(None, None, error))
            raise


class LoadResult(NamedTuple):
    """An offer and what is new in it, or the error that kept one from being made."""

    snapshot: ServerSnapshot | None
    changes: SnapshotChanges | None = None
    error: BaseException | None = None


class LiveCatalog:
    """Loads the shelf in a thread of its own, and again after every change; asked from one event loop at a time."""

    def __init__(
        self, loader: SkillLoader | ServedSkills, limits: Limits, options: ServeOptions, *, notice: WatchMethod | None
    ) -> None:
        self._loader = loader
        self._limits = limits
        self._options = options
        self._notice: WatchMethod | None = notice
        self._manifests = ManifestCache(limits)
        self._users = 0
        self._load_thread: LoadThread | None = None
        self._first_load: asyncio.Future[None] | None = None
        self._snapshot: ServerSnapshot | None = None
        self._snapshot_replaced = asyncio.Event()
        self._reload_lock = asyncio.Lock()
        self._next_reload: asyncio.Task[ServerSnapshot | None] | None = None
        self.announce: AnnounceChanges | None = None
        self._on_loaded: Callable[[ServedSkills], None] | None = None

    # -- from the event loop -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load for this event loop; every start needs a stop."""
        self._users += 1
        if self._users > 1:
            return
        loop = asyncio.get_running_loop()
        self._reload_lock, self._next_reload = asyncio.Lock(), None
        self._first_load = loop.create_future()
        self._first_load.add_done_callback(lambda future: future.cancelled() or future.exception())

        def deliver(work: LoadThread, made: LoadResult) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it everybody who could ask
                loop.call_soon_threadsafe(self._accept_result, work, made)

        self._load_thread = LoadThread(self._load_and_watch, deliver)

    async def stop(self) -> None:
        """End watching."""
        self._users -= 1
        if self._users or self._load_thread is None:
            return
        work, self._load_thread, self._snapshot = self._load_thread, None, None
        work.close()
        await asyncio.to_thread(work.thread.join, 5)

    async def get_snapshot(self) -> ServerSnapshot:
        """What is offered now; waits for the first load."""
        if self._snapshot is None:
            assert self._first_load is not None  # noqa: S101 - a request comes after the start
            await asyncio.shield(self._first_load)
        assert self._snapshot is not None  # noqa: S101 - set before the future
        return self._snapshot

    async def wait_for_newer(self, than: ServerSnapshot) -> ServerSnapshot | None:
        """What is offered once that is no more; ``None`` where nobody watches, or nothing comes in time."""
        if self._load_thread is None or self._load_thread.following is None:
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(_RELOAD_SECONDS + self._limits.watch_seconds):
                while self._snapshot is than:
                    await self._snapshot_replaced.wait()
                return self._snapshot
        return None

    async def reload(self) -> ServerSnapshot | None:
        """An offer of what lies on the disk now, loaded after this was asked; ``None`` where nobody watches.

        Changes are noticed some time after they happen, so what this offers may not have been announced yet. Loads run
        one at a time, and everybody who asks during one shares the next.
        """
        if self._load_thread is None or self._load_thread.following is None or isinstance(self._loader, ServedSkills):
            return None
        known = await self.get_snapshot()
        if self._next_reload is None:
            self._next_reload = asyncio.create_task(self._reload(self._loader, known))
        return await asyncio.shield(self._next_reload)

    async def _reload(self, loader: SkillLoader, known: ServerSnapshot) -> ServerSnapshot | None:
        async with self._reload_lock:
            self._next_reload = None  # whoever asks from here on may ask about something that this load does not see
            try:
                shelf = await asyncio.to_thread(loader.load)
            except Exception:
                logger.exception("the skills could not be loaded again; answered from what was loaded before")
                return None
        shelf.remember_names(known.served)
        return self._make_snapshot(shelf)

    async def get_snapshot_within(self, seconds: float) -> ServerSnapshot | None:
        """What is offered: waited for where little has to be loaded, else ``None`` if it is not there in time."""
        if self._snapshot is not None or await asyncio.to_thread(self._is_small):
            return await self.get_snapshot()
        try:
            return await asyncio.wait_for(self.get_snapshot(), seconds)
        except TimeoutError:
            return None

    def _is_small(self) -> bool:
        return isinstance(self._loader, ServedSkills) or self._loader.is_small()

    def _accept_result(self, work: LoadThread, made: LoadResult) -> None:
        if work is not self._load_thread or self._first_load is None:
            return
        self._snapshot = made.snapshot or self._snapshot
        swapped, self._snapshot_replaced = self._snapshot_replaced, asyncio.Event()
        swapped.set()
        if not self._first_load.done():
            if made.error is None:
                self._first_load.set_result(None)
                self._call_on_loaded()
            else:
                self._first_load.set_exception(made.error)
        if made.changes is not None and self.announce is not None:
            self.announce(made.changes)

    def call_when_loaded(self, told: Callable[[ServedSkills], None]) -> None:
        """Call ``told`` with the first shelf, once: now if it is there."""
        self._on_loaded = told
        self._call_on_loaded()

    def _call_on_loaded(self) -> None:
        if self._on_loaded is not None and self._snapshot is not None:
            told, self._on_loaded = self._on_loaded, None
            told(self._snapshot.served)

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _load_and_watch(self, work: LoadThread) -> None:
        if isinstance(self._loader, ServedSkills) or self._notice is None:
            shelf = self._loader if isinstance(self._loader, ServedSkills) else self._loader.load()
            work.deliver(LoadResult(self._make_next_snapshot(shelf)))
            return
        work.following = following = Reloader(
            self._loader.load,
            self._loader.watched_folders,
            every=self._limits.watch_seconds,
            notice=self._notice,
            limits=self._limits,
        )
        before: ServerSnapshot | None = None
        while not work.is_closed:
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
                found.remember_names(before.served)
            fresh = self._make_next_snapshot(found)
            work.deliver(LoadResult(fresh, None if before is None else self._compare_snapshots(before, fresh)))
            before = fresh
        following.close()

    def _make_next_snapshot(self, shelf: ServedSkills) -> ServerSnapshot:
        self._manifests.keep_only(shelf.skills.values())
        return self._make_snapshot(shelf)

    def _make_snapshot(self, shelf: ServedSkills) -> ServerSnapshot:
        tools = ModelTools(shelf, self._options)
        answers = SkillHandlers(shelf, self._manifests, self._limits)
        return ServerSnapshot(answers, tools, Prompts(shelf, tools, self._limits))

    def _compare_snapshots(self, old: ServerSnapshot, new: ServerSnapshot) -> SnapshotChanges:
        updated = [
            uri for path, skill in new.served.skills.items() for uri in self._find_updated_uris(path, skill, old.served)
        ]
        tools = old.tools.definitions != new.tools.definitions
        prompts = old.prompts.names != new.prompts.names
        return SnapshotChanges(tools, prompts, tuple(updated[:_MAX_UPDATED_URIS]), old.tools.listed_skills)

    def _find_updated_uris(self, path: str, skill: Skill, old: ServedSkills) -> list[str]:
        """The files of a skill that are not what was told of them; its SKILL.md where nothing was told."""
        told = self._manifests.get_cached(skill)
        if told is None:
            before = old.skills.get(path)
            same = before is not None and before.identity == skill.identity
            return [] if same else [make_uri(path, SKILL_FILE)]
        try:
            now = self._manifests.get_manifest(skill)
        except SkillError:
            return [make_uri(path, SKILL_FILE)]
        if now is told:
            return []
        digests = {file.path: file.hashed.digest for file in told.files}
        return [make_uri(path, file.path) for file in now.files if digests.get(file.path) != file.hashed.digest]


def make_live_catalog(
    roots: Iterable[str | os.PathLike[str]],
    catalog: Catalog | None = None,
    limits: Limits = DEFAULT_LIMITS,
    options: ServeOptions = _DEFAULT_OPTIONS,
    *,
    notice: WatchMethod | None = "auto",
) -> LiveCatalog:
    """A keeper of what lies below folders (none: the standard places), or of a catalogue."""
    loader = SkillLoader(resolve_roots(roots), limits) if catalog is None else build_from_catalog(catalog, limits)
    return LiveCatalog(loader, limits, options, notice=notice)
