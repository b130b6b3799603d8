"""Keeps what a server offers in step with the disk: one snapshot at a time, replaced whole, then announced."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.watch import Reloader
from prowess.errors import SkillError
from prowess.limits import DEFAULT_LIMITS
from prowess.mcp.handlers import make_snapshot
from prowess.mcp.manifests import ManifestCache
from prowess.mcp.options import ServeOptions, resolve_roots
from prowess.mcp.served_skills import ServedSkills, SkillLoader, build_from_catalog, make_uri
from prowess.names import SKILL_FILE
from prowess.policy.files import bind_policy

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Coroutine, Iterable

    from prowess.discovery.watch import WatchMethod
    from prowess.limits import Limits
    from prowess.mcp.handlers import ServerSnapshot
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill

    AnnounceChanges = Callable[["SnapshotChanges"], None]
    DeliverResult = Callable[["LoadThread", "LoadResult"], None]

logger = logging.getLogger("prowess.mcp")

_DEFAULT_OPTIONS = ServeOptions()
_MAX_UPDATED_URIS = 1_000  # a replaced library would otherwise give a notification for each of its files
_RELOAD_SECONDS = 5.0
_JOIN_SECONDS = 5.0


class SnapshotChanges(NamedTuple):
    """What a new snapshot changes for clients: whether tools or prompts differ, and which files."""

    tools: bool
    prompts: bool
    updated_uris: tuple[str, ...]
    """The addresses of the files whose content has changed."""
    listed_before: tuple[Skill, ...] = ()
    """The skills that models were shown before the change."""


class LoadThread:
    """The thread that loads the skills of a ``LiveCatalog``, and delivers each result to it."""

    def __init__(self, work: Callable[[LoadThread], None], deliver: DeliverResult) -> None:
        self.reloader: Reloader[ServedSkills] | None = None
        self.is_closed = False
        self._work = work
        self.deliver = partial(deliver, self)
        self.thread = Thread(target=bind_policy(self._run), name="prowess-loader", daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Have the thread end soon; this does not wait for it."""
        self.is_closed = True
        if self.reloader is not None:
            self.reloader.close()

    def _run(self) -> None:
        try:
            self._work(self)
        except BaseException as error:
            self.deliver(LoadResult(None, None, error))
            raise


class LoadResult(NamedTuple):
    """A snapshot and what it changes, or the error that kept it from being made."""

    snapshot: ServerSnapshot | None
    changes: SnapshotChanges | None = None
    error: BaseException | None = None


class LiveCatalog:
    """Loads the skills in a thread of its own, and again after every change on disk.

    All methods are for one event loop at a time. The thread hands its results to that loop, so nothing here needs a
    lock.
    """

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
        self._on_loaded: Callable[[ServedSkills], Coroutine[None, None, None]] | None = None
        self._report_task: asyncio.Task[None] | None = None

    # -- from the event loop -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load and to watch, for the running event loop; every start needs a stop."""
        self._users += 1
        if self._users > 1:
            return
        loop = asyncio.get_running_loop()
        self._reload_lock, self._next_reload = asyncio.Lock(), None
        self._first_load = loop.create_future()
        self._snapshot = None
        # Reads the exception, since asyncio logs one that nobody has asked for: there may be no request.
        self._first_load.add_done_callback(lambda future: future.cancelled() or future.exception())

        def deliver(thread: LoadThread, result: LoadResult) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it everybody who could ask
                loop.call_soon_threadsafe(self._accept_result, thread, result)

        self._load_thread = LoadThread(self._load_and_watch, deliver)
        self._report_first_load()

    async def stop(self) -> None:
        """End watching when no other user is left, and wait a few seconds for the thread and for a running report."""
        self._users -= 1
        if self._users or self._load_thread is None:
            return
        ended, self._load_thread, self._snapshot = self._load_thread, None, None
        ended.close()
        await asyncio.to_thread(ended.thread.join, _JOIN_SECONDS)
        if self._report_task is not None:
            await asyncio.wait([self._report_task], timeout=_JOIN_SECONDS)

    async def get_snapshot(self) -> ServerSnapshot:
        """Return the current snapshot, after the first load; raises what kept that from succeeding."""
        if self._snapshot is None:
            await self._wait_for_first_load()
        assert self._snapshot is not None
        return self._snapshot

    async def _wait_for_first_load(self) -> None:
        assert self._first_load is not None
        await asyncio.shield(self._first_load)  # a request that is cancelled must not cancel the load for others

    async def wait_for_newer(self, than: ServerSnapshot) -> ServerSnapshot | None:
        """Return the snapshot that replaces ``than``; ``None`` when nothing is watched, or none comes in time."""
        await self._wait_for_first_load()
        if self._load_thread is None or self._load_thread.reloader is None:
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(_RELOAD_SECONDS + self._limits.watch_seconds):
                while self._snapshot is than:
                    await self._snapshot_replaced.wait()
                return self._snapshot
        return None

    async def reload(self) -> ServerSnapshot | None:
        """Return a snapshot of what is on the disk now, from a load that begins after this call.

        Returns ``None`` when nothing is watched. Changes are noticed some time after they happen, so this snapshot may
        hold changes that are not announced yet.
        Loads run one at a time, and all callers during one share the next.
        """
        await self._wait_for_first_load()
        if self._load_thread is None or self._load_thread.reloader is None or isinstance(self._loader, ServedSkills):
            return None
        known = await self.get_snapshot()
        if self._next_reload is None:
            self._next_reload = asyncio.create_task(self._reload(self._loader, known))
        return await asyncio.shield(self._next_reload)

    async def _reload(self, loader: SkillLoader, known: ServerSnapshot) -> ServerSnapshot | None:
        async with self._reload_lock:
            self._next_reload = None  # a later caller may ask about a change that this load does not see
            try:
                served = await asyncio.to_thread(loader.load)
            except Exception:
                logger.exception("the skills could not be loaded again; answered from what was loaded before")
                return None
        served.remember_names(known.handlers.served)
        return self._make_snapshot(served)

    async def get_handshake_snapshot(self) -> ServerSnapshot | None:
        """Return the current snapshot, or ``None`` for a large library that is not loaded yet.

        A small library is always waited for.
        """
        loader = self._loader
        if self._snapshot or isinstance(loader, ServedSkills) or await asyncio.to_thread(loader.is_small):
            return await self.get_snapshot()
        return self._snapshot

    def _accept_result(self, thread: LoadThread, result: LoadResult) -> None:
        if thread is not self._load_thread or self._first_load is None:
            return  # a thread that was stopped may still have had a result on its way
        # The snapshot comes before the announcement: a client that hears of a change asks at once.
        self._snapshot = result.snapshot or self._snapshot
        replaced, self._snapshot_replaced = self._snapshot_replaced, asyncio.Event()
        replaced.set()
        if not self._first_load.done():
            if result.error is None:
                self._first_load.set_result(None)
                self._report_first_load()
            else:
                self._first_load.set_exception(result.error)
        if result.changes is not None and self.announce is not None:
            self.announce(result.changes)

    def call_after_load(self, report: Callable[[ServedSkills], Coroutine[None, None, None]]) -> None:
        """Run ``report`` once with the skills of the first load: now when they are loaded already."""
        self._on_loaded = report
        self._report_first_load()

    def _report_first_load(self) -> None:
        if self._on_loaded is not None and self._snapshot is not None:
            report, self._on_loaded = self._on_loaded, None
            self._report_task = asyncio.create_task(report(self._snapshot.handlers.served))

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _load_and_watch(self, thread: LoadThread) -> None:
        if isinstance(self._loader, ServedSkills) or self._notice is None:
            fixed = self._loader if isinstance(self._loader, ServedSkills) else self._loader.load()
            thread.deliver(LoadResult(self._make_snapshot(fixed)))
            return
        thread.reloader = reloader = Reloader(
            self._loader.load,
            self._loader.watched_folders,
            every=self._limits.watch_seconds,
            notice=self._notice,
            limits=self._limits,
        )
        before: ServerSnapshot | None = None
        while not thread.is_closed:
            try:
                served = reloader.next()
            except Exception:
                if before is None:  # a first load that fails is the answer to every request
                    raise
                logger.exception("the skills could not be loaded again; the next change is another chance")
                continue
            if served is None:
                break
            if before is not None:
                served.remember_names(before.handlers.served)
            self._manifests.keep_only(served.loaded)
            fresh = self._make_snapshot(served)
            thread.deliver(LoadResult(fresh, self._compare_snapshots(before, fresh) if before is not None else None))
            before = fresh
        reloader.close()

    def _make_snapshot(self, served: ServedSkills) -> ServerSnapshot:
        return make_snapshot(served, self._manifests, self._options, self._limits)

    def _compare_snapshots(self, old: ServerSnapshot, new: ServerSnapshot) -> SnapshotChanges:
        updated = [
            uri
            for path, skill in new.handlers.served.skills.items()
            for uri in self._find_updated_uris(path, skill, old.handlers.served)
        ]
        return SnapshotChanges(
            tools=old.tools.definitions != new.tools.definitions,
            prompts=old.prompts.names != new.prompts.names,
            updated_uris=tuple(updated[:_MAX_UPDATED_URIS]),
            listed_before=old.tools.listed_skills,
        )

    def _find_updated_uris(self, path: str, skill: Skill, old: ServedSkills) -> list[str]:
        """Return the addresses of a skill's files that have changed since its manifest was sent.

        For a skill whose manifest was never sent, only its SKILL.md is compared: nobody can hold an old digest of the
        other files, and hashing them would cost a read of the whole library.
        """
        sent = self._manifests.find_manifest(skill)
        if sent is None:
            before = old.skills.get(path)
            is_same = before is not None and before.identity == skill.identity
            return [] if is_same else [make_uri(path, SKILL_FILE)]
        try:
            current = self._manifests.get_manifest(skill)
        except SkillError:
            return [make_uri(path, SKILL_FILE)]
        if current is sent:
            return []
        digests = {file.path: file.hashed.digest for file in sent.files}
        return [make_uri(path, file.path) for file in current.files if digests.get(file.path) != file.hashed.digest]


def make_live_catalog(
    roots: Iterable[str | os.PathLike[str]],
    catalog: Catalog | None = None,
    limits: Limits = DEFAULT_LIMITS,
    options: ServeOptions = _DEFAULT_OPTIONS,
    *,
    notice: WatchMethod | None = "auto",
) -> LiveCatalog:
    """Return a live catalogue of the skills below folders (none: the standard places), or of a fixed catalogue."""
    loader = SkillLoader(resolve_roots(roots), limits) if catalog is None else build_from_catalog(catalog, limits)
    return LiveCatalog(loader, limits, options, notice=notice)
