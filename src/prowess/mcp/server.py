"""A server of skills for MCP clients: the skills extension, tools and prompts over the official SDK."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions
from mcp.server.lowlevel import Server as Lowlevel
from mcp.server.runner import serve_dual_era_loop
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from prowess.errors import SkillError
from prowess.limits import DEFAULT_LIMITS
from prowess.mcp.answers import EXTENSION_METHODS, EXTENSION_SETTINGS, LIST_METHODS, LargeFile
from prowess.mcp.listing_text import write_new_skills, write_search_guide
from prowess.mcp.live_catalog import SnapshotChanges, make_live_catalog
from prowess.mcp.options import DEFAULT_BUDGET, DEFAULT_MAX_CHARS, LISTING_PLACES, PARTS, make_options
from prowess.mcp.served_skills import LeftOut
from prowess.sources.mcp import EXTENSION

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.subscriptions import ServerEvent

    from prowess.discovery.watch import WatchMethod
    from prowess.limits import Limits
    from prowess.mcp.answers import Answer, ListMethod
    from prowess.mcp.handlers import ServerSnapshot
    from prowess.mcp.live_catalog import LiveCatalog
    from prowess.mcp.options import ServeOptions
    from prowess.mcp.served_skills import ServedSkills
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill

    Context = ServerRequestContext[Any, Any]
    Handler = Callable[[Context, Any], Awaitable[HandlerResult]]
    DeliverEvent = Callable[[ServerEvent], None]


_INTERNAL_CODES = frozenset(("unreadable", "unreadable-directory", "changed-during-read"))
"""The codes of failures of this machine; every other code is about what the client asked for."""
_MAX_TRIES = 5  # somebody may delete skills for as long as the request lasts
_HANDSHAKES = frozenset(("initialize", "server/discover"))

logger = logging.getLogger("prowess.mcp")


class _SdkServer(Lowlevel[Any]):
    """The SDK's server, which promises every client to notify it when lists change."""

    def get_capabilities(self, *given: Any, **named: Any) -> types.ServerCapabilities:
        options = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().get_capabilities(options, *given[1:], **named)

    async def run(self, read_stream: Any, write_stream: Any, *_: Any, raise_exceptions: bool = False) -> None:
        """Serve one client until its streams end.

        The SDK's own ``run`` fixes the instructions before the client connects. Here the handshake writes them, when
        the skills may have been loaded.
        """
        async with self.lifespan(self) as state:
            await serve_dual_era_loop(
                self, read_stream, write_stream, lifespan_state=state, raise_exceptions=raise_exceptions
            )


class Server:
    """An MCP server for the skills below folders (none named: the standard places), or for those of a catalogue.

    ``extension``, ``tools``, ``instructions`` and ``prompts`` switch the parts on and off. ``listing``: where models
    read about the skills, in the ``instructions``, in the description of a tool (``tools``), or in both.
    ``budget`` (tokens) and ``max_chars``: how much the listing may take in each place, ``None`` for any amount.
    ``notice``: how changes on disk are noticed (as for ``watch``), ``None`` for not at all.
    ``show_folders``: whether clients see where the skills are on this machine.
    """

    def __init__(
        self,
        *roots: str | os.PathLike[str],
        catalog: Catalog | None = None,
        extension: bool = True,
        tools: bool = True,
        instructions: bool = True,
        prompts: bool = True,
        listing: Iterable[str] = LISTING_PLACES,
        budget: int | None = DEFAULT_BUDGET,
        max_chars: int | None = DEFAULT_MAX_CHARS,
        notice: WatchMethod | None = "auto",
        show_folders: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or DEFAULT_LIMITS
        self._options = make_options(
            extension=extension,
            tools=tools,
            instructions=instructions,
            prompts=prompts,
            listing=listing,
            budget=budget,
            max_chars=max_chars,
            show_folders=show_folders,
        )
        self._live_catalog = make_live_catalog(roots, catalog, self.limits, self._options, notice=notice)
        self._live_catalog.announce = self._announce_changes
        self._notifier = _ChangeNotifier(self._live_catalog, self._options)
        self.listening = ListenHandler(self._notifier.bus, max_subscriptions=self.limits.max_http_streams)
        self._large_reads = anyio.Semaphore(self.limits.max_large_reads)
        self._new_skills: _NewSkills | None = None
        self.lowlevel = self._build_lowlevel()

    def tell_left_out(self, tell: Callable[[LeftOut], None]) -> None:
        """Call ``tell`` with how many skills are not served, as soon as they are loaded, if there are any.

        Where there is no skill at all, it is called with zeros.
        """

        async def report_left_out(served: ServedSkills) -> None:
            # In a thread: the files of every skill are listed for it.
            left_out = await anyio.to_thread.run_sync(count_left_out, served)
            if any(left_out) or not served.catalog.skills:
                tell(left_out)

        def count_left_out(served: ServedSkills) -> LeftOut:
            return served.left_out if self._options.extension else LeftOut(0, len(served.catalog.failures))

        self._live_catalog.call_after_load(report_left_out)

    def tell_arrivals(self) -> None:
        """Describe skills that arrive from now on in the answer to the next tool call, each skill once.

        This is for a server with one client, since the server does not know what a second client has seen.
        Nothing is announced when the options ask for no listing.
        """
        if any(map(self._options.lists_in, LISTING_PLACES)):
            self._new_skills = _NewSkills()

    # -- what the SDK is given ---------------------------------------------------------------------------------------

    def _build_lowlevel(self) -> _SdkServer:
        from prowess import __version__  # a cycle: the package loads this module on first use

        made = _SdkServer("prowess", version=__version__, lifespan=self._lifespan, get_tool_input_schema=lambda _: None)
        made.middleware.append(self._handle_handshake)
        for method, params, handler in self._handlers():
            made.add_request_handler(method, params, handler)
        made.add_notification_handler("notifications/initialized", types.NotificationParams, self._handle_ready)
        if self._options.extension:
            made.extensions[EXTENSION] = dict(EXTENSION_SETTINGS)
        return made

    def _handlers(self) -> Iterator[tuple[str, type[Any], Handler]]:
        offered = {part for part in PARTS if getattr(self._options, part)}
        for name, method in METHODS.items():
            if not offered.isdisjoint(method.parts):
                yield name, method.params, self._make_handler(name, method)
        yield "subscriptions/listen", types.SubscriptionsListenRequestParams, self._handle_listen

    def _make_handler(self, name: str, method: Method) -> Handler:
        """Return a handler that answers from the snapshot of the moment, in a thread since it reads files."""

        async def handle(ctx: Context, params: Any) -> dict[str, Any]:
            # A client of an older protocol cannot have learned of the extension: for it these methods do not exist.
            if name in EXTENSION_METHODS and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                raise MCPError(types.METHOD_NOT_FOUND, "Method not found", name)
            try:
                result = await self._answer_or_reload(method, params)
                return await self._append_new_skills(result, params.arguments) if name == _TOOL_CALL else result
            except SkillError as error:
                code = types.INTERNAL_ERROR if error.code in _INTERNAL_CODES else types.INVALID_PARAMS
                raise MCPError(code, error.message) from None
            except Exception:
                # The log has the details. The client gets none, since they may name files of this machine.
                logger.exception("a request could not be answered")
                raise MCPError(types.INTERNAL_ERROR, "Internal error") from None

        return handle

    async def _append_new_skills(self, result: dict[str, Any], arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the result of a tool call, followed by the new skills that the model may not have been shown."""
        if self._new_skills is None or result.get("isError"):
            return result
        listed = (await self._live_catalog.get_snapshot()).tools.listed_skills
        new = self._new_skills.take_new(listed, (arguments or {}).get("name"))
        if not new:
            return result
        # In a thread: thousands of skills may have come at once, and fitting them into the budget takes time.
        text = await anyio.to_thread.run_sync(write_new_skills, new, self._options)
        return {**result, "content": [*result["content"], {"type": "text", "text": text}]}

    async def _answer_or_reload(self, method: Method, params: Any) -> dict[str, Any]:
        """Return the result; when it is a refusal, or about a skill that has changed, answer again from the disk.

        A skill that was made, fixed, broken or renamed a moment ago may not have been noticed yet. A client that hears
        of no such skill does not ask again.
        """
        known = await self._live_catalog.get_snapshot()
        refusal: SkillError | None = None
        result: dict[str, Any] = {}
        try:
            answer = await self._answer_from_snapshot(method, params, known)
            result = answer.result
            if answer.state != "skill-changed" and not result.get("isError"):
                return result
        except SkillError as error:
            refusal = error
        if (snapshot := await self._live_catalog.reload()) is not None:
            # A skill that changes once more meanwhile is not loaded again: the answer is newer than the request.
            return (await self._answer_from_snapshot(method, params, snapshot)).result
        if refusal is not None:
            raise refusal
        return result

    async def _answer_from_snapshot(self, method: Method, params: Any, snapshot: ServerSnapshot) -> Answer:
        """Return the answer from one snapshot, or from a newer one when skills of this one are gone from the disk."""
        tries = 0
        while True:
            tries += 1
            answer = await anyio.to_thread.run_sync(method.answer, snapshot, params)
            if isinstance(answer, LargeFile):
                async with self._large_reads:
                    return await anyio.to_thread.run_sync(answer.read)
            if answer.state != "skills-gone" or tries == _MAX_TRIES:
                return answer
            newer = await self._live_catalog.wait_for_newer(snapshot)
            if newer is None:
                return answer
            snapshot = newer

    # -- the life of a connection ------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _lifespan(self, _: Lowlevel[Any]) -> AsyncIterator[dict[str, Any]]:
        self._live_catalog.start()
        try:
            yield {}
        finally:
            await self._live_catalog.stop()

    async def _handle_handshake(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Put the listing into the answer to a handshake, and remember a client that came before it was ready."""
        if ctx.method in _HANDSHAKES and self._options.instructions:
            snapshot = await self._live_catalog.get_handshake_snapshot()
            if snapshot is None:
                self._notifier.record_late_handshake(ctx)
                self.lowlevel.instructions = write_search_guide(self._options) or None
            else:
                tools = snapshot.tools
                self.lowlevel.instructions = await anyio.to_thread.run_sync(lambda: tools.instructions) or None
        return await call_next(ctx)

    async def _handle_ready(self, ctx: Context, _: types.NotificationParams) -> None:
        self._notifier.begin_notifying(ctx)

    async def _handle_listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> HandlerResult:
        uris = dict.fromkeys(params.notifications.resource_subscriptions or ())
        if len(uris) > self.limits.max_subscribed_uris:
            message = f"{len(uris)} files; a client can subscribe to at most {self.limits.max_subscribed_uris}"
            raise MCPError(types.INVALID_PARAMS, message)
        for uri in uris:
            snapshot = await self._live_catalog.get_snapshot()
            with suppress(SkillError):  # the client may subscribe to a file that is not there yet
                # The digests of the skill's current files: without them a later change would not be noticed.
                await anyio.to_thread.run_sync(snapshot.handlers.load_manifest, uri)
        return await self.listening(ctx, params)

    def _announce_changes(self, changes: SnapshotChanges) -> None:
        if self._new_skills is not None:
            self._new_skills.record_change(changes.listed_before)
        self._notifier.announce(changes)


class _NewSkills:
    """Remembers which skills the model of the server's one client knows: from the listing, an answer, or a load."""

    def __init__(self) -> None:
        self._known_to_model: set[str] = set()
        self._has_changed = False

    def record_change(self, before: Iterable[Skill]) -> None:
        """Remember that the listing has changed; ``before`` are the skills that it had."""
        if not self._has_changed:  # the model saw only the first listing: answers announce skills of later ones
            self._known_to_model.update(skill.name for skill in before)
            self._has_changed = True

    def take_new(self, listed: Iterable[Skill], called: object) -> list[Skill]:
        """Return the listed skills that the model does not know, each skill once.

        ``called`` is the name in the arguments of the call, a skill that the model knows from now on.
        """
        if isinstance(called, str):
            self._known_to_model.add(called)
        if not self._has_changed:
            return []
        new = [skill for skill in listed if skill.name not in self._known_to_model]
        self._known_to_model.update(skill.name for skill in new)
        return new


_TOOL_CALL = "tools/call"


class _GetSkillParams(types.RequestParams):
    """The parameters of ``skills/get``: the address of the skill's SKILL.md."""

    uri: str


class _ReadDirectoryParams(types.PaginatedRequestParams):
    """The parameters of ``resources/directory/read``: the address of a folder in a skill."""

    uri: str


class Method(NamedTuple):
    """A method: the parts of a server that offer it, the class of its parameters, and the function that answers it."""

    parts: tuple[str, ...]
    params: type[Any]
    answer: Callable[[ServerSnapshot, Any], Answer | LargeFile]


def _complete_argument(snapshot: ServerSnapshot, params: Any) -> Answer:
    given: Mapping[str, str] = (params.context.arguments if params.context else None) or {}
    ref = params.ref.model_dump(by_alias=True, mode="json")
    return snapshot.prompts.complete_argument(ref, params.argument.name, params.argument.value, given)


def _from_list_method(method: ListMethod) -> Method:
    return Method(
        (method.part,), types.PaginatedRequestParams, lambda snapshot, p: method.list_page(snapshot, p.cursor)
    )


_EXTENSION_PART, _TOOLS_PART, _PROMPTS_PART = ("extension",), ("tools",), ("prompts",)

METHODS: dict[str, Method] = {
    **{name: _from_list_method(method) for name, method in LIST_METHODS.items()},
    "skills/get": Method(_EXTENSION_PART, _GetSkillParams, lambda snapshot, p: snapshot.handlers.get_skill(p.uri)),
    "resources/directory/read": Method(
        _EXTENSION_PART,
        _ReadDirectoryParams,
        lambda snapshot, p: snapshot.handlers.read_directory(p.uri, p.cursor),
    ),
    "resources/read": Method(
        _EXTENSION_PART,
        types.ReadResourceRequestParams,
        lambda snapshot, p: snapshot.handlers.read_resource(p.uri),
    ),
    _TOOL_CALL: Method(
        _TOOLS_PART,
        types.CallToolRequestParams,
        lambda snapshot, p: snapshot.tools.call_tool(p.name, p.arguments or {}),
    ),
    "prompts/get": Method(
        _PROMPTS_PART,
        types.GetPromptRequestParams,
        lambda snapshot, p: snapshot.prompts.get_prompt(p.name, p.arguments or {}),
    ),
    "completion/complete": Method((*_EXTENSION_PART, *_PROMPTS_PART), types.CompleteRequestParams, _complete_argument),
}
"""Every method that is answered from a snapshot, by its name."""


_ALL_CHANGES = SnapshotChanges(tools=True, prompts=True, updated_uris=())


class _SubscriptionBus(InMemorySubscriptionBus):
    """The SDK's bus, which also reports every client that begins to listen."""

    def __init__(self, on_subscribe: Callable[[DeliverEvent], None]) -> None:
        super().__init__()
        self._on_subscribe = on_subscribe

    def subscribe(self, listener: DeliverEvent) -> Callable[[], None]:
        """Deliver every event to ``listener`` until the returned function is called."""
        unsubscribe = super().subscribe(listener)
        self._on_subscribe(listener)
        return unsubscribe


class _ChangeNotifier:
    """Tells the clients of one server about changes."""

    def __init__(self, live_catalog: LiveCatalog, options: ServeOptions) -> None:
        self.bus = _SubscriptionBus(self._notify_late_subscriber)
        self._live_catalog = live_catalog
        self._options = options
        # Weak, so that a connection that the SDK has dropped is not kept alive by those who would notify it.
        self._older_connections: WeakSet[Any] = WeakSet()
        self._late_connections: WeakSet[Any] = WeakSet()
        self._was_late = False
        # An event loop keeps only weak references to its tasks: without this set one could vanish before it ends.
        self._tasks: set[asyncio.Task[None]] = set()

    def announce(self, changes: SnapshotChanges) -> None:
        """Begin to notify every client of ``changes``; call it from the event loop."""
        self._start_task(self._notify_clients(changes, self._older_connections))

    def record_late_handshake(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Remember that a handshake was answered before the skills were loaded."""
        self._was_late = True
        if (connection := _find_connection(ctx)) is not None:
            self._late_connections.add(connection)

    def begin_notifying(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Notify a client of an older protocol from now on, and at once when its handshake came too early.

        A client need not listen before it has sent ``initialized``, so nothing is sent earlier.
        """
        connection = _find_connection(ctx)
        if connection is None:
            return
        self._older_connections.add(connection)
        if connection in self._late_connections:
            self._late_connections.discard(connection)
            self._start_task(self._run_after_load(lambda: self._notify_older_client(connection, _ALL_CHANGES)))

    def _notify_late_subscriber(self, deliver: DeliverEvent) -> None:
        """Have a client of the current protocol ask again, if any handshake came too early.

        Such clients have no connection by which the late one could be recognized. So each subscriber is notified, which
        costs it one needless request.
        """

        async def deliver_all() -> None:
            for event in (ResourcesListChanged(), ToolsListChanged(), PromptsListChanged()):
                deliver(event)

        if self._was_late:
            self._start_task(self._run_after_load(deliver_all))

    async def _run_after_load(self, notify: Callable[[], Awaitable[None]]) -> None:
        """Await ``notify`` once the skills are loaded; do nothing when loading fails, which every request reports."""
        try:
            await self._live_catalog.get_snapshot()
        except Exception:  # noqa: BLE001 - the load thread has raised it already, where it happened
            return
        await notify()

    async def _notify_clients(self, changes: SnapshotChanges, older_connections: Iterable[Any]) -> None:
        await self.bus.publish(ResourcesListChanged())
        for uri in changes.updated_uris:
            await self.bus.publish(ResourceUpdated(uri))
        if changes.tools:
            await self.bus.publish(ToolsListChanged())
        if changes.prompts:
            await self.bus.publish(PromptsListChanged())
        for connection in list(older_connections):
            await self._notify_older_client(connection, changes)

    async def _notify_older_client(self, connection: Any, changes: SnapshotChanges) -> None:
        if self._options.extension:
            await connection.send_resource_list_changed()
        if self._options.tools and changes.tools:
            await connection.send_tool_list_changed()
        if self._options.prompts and changes.prompts:
            await connection.send_prompt_list_changed()

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _find_connection(ctx: ServerRequestContext[Any, Any]) -> Any:
    """Return the connection of a request, or ``None`` when it has none; the SDK offers no public way to it."""
    return getattr(ctx.session, "_connection", None)
