"""A server of skills for MCP clients: the skills extension, tools and prompts over the official SDK."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
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
from prowess.mcp.handlers import LargeFileError, SkillChangedError, StaleSnapshotError
from prowess.mcp.listing_text import write_new_skills, write_search_guide
from prowess.mcp.live_catalog import SnapshotChanges, make_live_catalog
from prowess.mcp.new_skills import NewSkills
from prowess.mcp.options import DEFAULT_BUDGET, DEFAULT_MAX_CHARS, LISTING_PLACES, PARTS, make_options
from prowess.mcp.pagination import make_page

if TYPE_CHECKING:
    import os
    from asyncio import Task
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.subscriptions import ServerEvent

    from prowess.discovery.file_changes import WatchMethod
    from prowess.limits import Limits
    from prowess.mcp.live_catalog import ServerSnapshot
    from prowess.mcp.options import ServeOptions
    from prowess.mcp.served_skills import LeftOut, ServedSkills
    from prowess.skills.catalog import Catalog

    Context = ServerRequestContext[Any, Any]
    Handler = Callable[[Context, Any], Awaitable[HandlerResult]]
    DeliverEvent = Callable[[ServerEvent], None]
    MethodWork = Callable[[ServerSnapshot, Any], dict[str, Any]]

EXTENSION = "io.modelcontextprotocol/skills"
_EXTENSION_METHODS = frozenset(("skills/list", "skills/get", "resources/directory/read"))
_INTERNAL_CODES = frozenset(("unreadable", "unreadable-directory", "changed-during-read"))
_MAX_TRIES = 5
_TOOL_CALL = "tools/call"
_HANDSHAKES = frozenset(("initialize", "server/discover"))

logger = logging.getLogger("prowess.mcp")


class GetSkillParams(types.RequestParams):
    """Which skill: the address of its SKILL.md."""

    uri: str


class ReadDirectoryParams(types.PaginatedRequestParams):
    """Which folder."""

    uri: str


def _complete_argument(offer: ServerSnapshot, params: Any) -> dict[str, Any]:  # noqa: ANN401 - the SDK's own
    said: Mapping[str, str] = (params.context.arguments if params.context else None) or {}
    ref = params.ref.model_dump(by_alias=True, mode="json")
    return offer.prompts.complete_argument(ref, params.argument.name, params.argument.value, said)


_EXTENSION_PART, _TOOLS_PART, _PROMPTS_PART = ("extension",), ("tools",), ("prompts",)
_PAGE_PARAMS = types.PaginatedRequestParams

METHODS: dict[str, tuple[tuple[str, ...], type[Any], MethodWork]] = {
    "skills/list": (_EXTENSION_PART, _PAGE_PARAMS, lambda offer, p: offer.handlers.list_skills(p.cursor)),
    "skills/get": (_EXTENSION_PART, GetSkillParams, lambda offer, p: offer.handlers.get_skill(p.uri)),
    "resources/directory/read": (
        _EXTENSION_PART,
        ReadDirectoryParams,
        lambda offer, p: offer.handlers.read_directory(p.uri, p.cursor),
    ),
    "resources/list": (_EXTENSION_PART, _PAGE_PARAMS, lambda offer, p: offer.handlers.list_resources(p.cursor)),
    "resources/templates/list": (_EXTENSION_PART, _PAGE_PARAMS, lambda offer, _: offer.handlers.list_templates()),
    "resources/read": (
        _EXTENSION_PART,
        types.ReadResourceRequestParams,
        lambda offer, p: offer.handlers.read_resource(p.uri),
    ),
    "tools/list": (_TOOLS_PART, _PAGE_PARAMS, lambda offer, _: make_page("tools", [*offer.tools.definitions], None)),
    _TOOL_CALL: (
        _TOOLS_PART,
        types.CallToolRequestParams,
        lambda offer, p: offer.tools.call_tool(p.name, p.arguments or {}),
    ),
    "prompts/list": (_PROMPTS_PART, _PAGE_PARAMS, lambda offer, p: offer.prompts.list_prompts(p.cursor)),
    "prompts/get": (
        _PROMPTS_PART,
        types.GetPromptRequestParams,
        lambda offer, p: offer.prompts.get_prompt(p.name, p.arguments or {}),
    ),
    "completion/complete": ((*_EXTENSION_PART, *_PROMPTS_PART), types.CompleteRequestParams, _complete_argument),
}
"""Every method: the parts that need it, its parameters, and the answer from an offer."""


class _SdkServer(Lowlevel[Any]):
    """The SDK's server, which tells every client that lists change."""

    def get_capabilities(self, *given: Any, **named: Any) -> types.ServerCapabilities:  # noqa: ANN401 - the SDK's own
        options = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().get_capabilities(options, *given[1:], **named)

    async def run(self, read_stream: Any, write_stream: Any, *_: Any, raise_exceptions: bool = False) -> None:  # noqa: ANN401
        """Serve one client; what it is told at first is made up when it asks, not before."""
        async with self.lifespan(self) as state:
            await serve_dual_era_loop(
                self, read_stream, write_stream, lifespan_state=state, raise_exceptions=raise_exceptions
            )


class _SubscriptionBus(InMemorySubscriptionBus):
    """The SDK's, which says who begins to listen."""

    def __init__(self, began: Callable[[DeliverEvent], None]) -> None:
        super().__init__()
        self._began = began

    def subscribe(self, listener: DeliverEvent) -> Callable[[], None]:
        """Deliver every event to ``listener`` until the returned function is called."""
        unsubscribe = super().subscribe(listener)
        self._began(listener)
        return unsubscribe


class Server:
    """Skills below folders (none named: the standard places), or of a catalogue, for MCP clients.

    ``extension``, ``tools``, ``instructions`` and ``prompts`` switch the parts. ``listing``: where models are told of
    the skills, in the ``instructions``, in the description of a tool (``tools``), or in both. ``budget`` (tokens) and
    ``max_chars``: how much each of them may take, ``None`` for any amount. ``notice``: how changes on disk are noticed
    (as for ``watch``), ``None`` for not at all.
    ``show_folders``: whether clients are told where the skills lie on this machine.
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
        self._bus = _SubscriptionBus(self._notify_late_client)
        self.listening = ListenHandler(self._bus, max_subscriptions=self.limits.max_http_streams)
        self._large_reads = anyio.Semaphore(self.limits.max_large_reads)
        self._older_connections: WeakSet[Any] = WeakSet()
        self._late_connections: WeakSet[Any] = WeakSet()
        self._was_late = False
        self._new_skills: NewSkills | None = None
        self._tasks: set[Task[None]] = set()
        self.lowlevel = self._build_lowlevel()

    def tell_left_out(self, tell: Callable[[LeftOut], None]) -> None:
        """Call ``tell`` with how many skills are not served, as soon as they are loaded, if there are any."""

        def report_left_out(shelf: ServedSkills) -> None:
            left_out = shelf.left_out if self._options.extension else shelf.left_out._replace(extension=0)
            if any(left_out):
                tell(left_out)

        self._live_catalog.call_when_loaded(report_left_out)

    def tell_arrivals(self) -> None:
        """Tell of skills that come from now on, once, in the answer to the next call of a tool.

        For a server of one client: another could not know what the first was told. Nothing is told where whoever
        set up the server wants no listing.
        """
        if any(map(self._options.lists_in, LISTING_PLACES)):
            self._new_skills = NewSkills()

    # -- what the SDK is given ---------------------------------------------------------------------------------------

    def _build_lowlevel(self) -> _SdkServer:
        from prowess import __version__  # noqa: PLC0415 - the package imports its parts, not the other way round

        made = _SdkServer("prowess", version=__version__, lifespan=self._lifespan, get_tool_input_schema=lambda _: None)
        made.middleware.append(self._handle_handshake)
        for method, params, handler in self._handlers():
            made.add_request_handler(method, params, handler)
        made.add_notification_handler("notifications/initialized", types.NotificationParams, self._handle_initialized)
        if self._options.extension:
            made.extensions[EXTENSION] = {"directoryRead": True}
        return made

    def _handlers(self) -> Iterator[tuple[str, type[Any], Handler]]:
        on = {part for part in PARTS if getattr(self._options, part)}
        for method, (needs, params, work) in METHODS.items():
            if not on.isdisjoint(needs):
                yield method, params, self._make_handler(method, work)
        yield "subscriptions/listen", types.SubscriptionsListenRequestParams, self._handle_listen

    def _make_handler(self, method: str, work: MethodWork) -> Handler:
        """A handler that answers from the offer of the moment, in a thread, since files are read."""

        async def handle(ctx: Context, params: Any) -> dict[str, Any]:  # noqa: ANN401 - as the method has them
            # The older protocols cannot declare an extension, and a method that nobody declared is none.
            if method in _EXTENSION_METHODS and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                raise MCPError(types.METHOD_NOT_FOUND, "Method not found", method)
            try:
                answer = await self._answer_or_reload(work, params)
                return await self._append_new_skills(answer, params.arguments) if method == _TOOL_CALL else answer
            except SkillError as error:
                code = types.INTERNAL_ERROR if error.code in _INTERNAL_CODES else types.INVALID_PARAMS
                raise MCPError(code, error.message) from None
            except Exception:
                logger.exception("a request could not be answered")
                raise MCPError(types.INTERNAL_ERROR, "Internal error") from None

        return handle

    async def _append_new_skills(self, answer: dict[str, Any], arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """The answer to a call of a tool, and behind it the new skills that the model may not have been shown."""
        if self._new_skills is None or answer.get("isError"):
            return answer
        listed = (await self._live_catalog.get_snapshot()).tools.listed_skills
        new = self._new_skills.take_new(listed, (arguments or {}).get("name"))
        if not new:
            return answer
        text = await anyio.to_thread.run_sync(write_new_skills, new, self._options)  # thousands may have come at once
        return {**answer, "content": [*answer["content"], {"type": "text", "text": text}]}

    async def _answer_or_reload(self, work: MethodWork, params: Any) -> dict[str, Any]:  # noqa: ANN401 - as the method has them
        """The answer; where it is a refusal, or about a skill that has changed, that of what is on the disk now.

        A skill that was made, mended, broken or renamed a moment ago may not have been noticed yet, and a client that
        hears that there is none does not ask again.
        """
        refusal: SkillError | None = None
        answer: dict[str, Any] = {}
        try:
            answer = await self._answer_from_snapshot(work, params, await self._live_catalog.get_snapshot())
            if not answer.get("isError"):
                return answer
        except SkillChangedError as outdated:
            answer = outdated.answer
        except SkillError as error:
            refusal = error
        if (offer := await self._live_catalog.reload()) is not None:
            try:
                return await self._answer_from_snapshot(work, params, offer)
            except SkillChangedError as outdated:  # changed once more, since this was asked
                return outdated.answer
        if refusal is not None:
            raise refusal
        return answer

    async def _answer_from_snapshot(self, work: MethodWork, params: Any, offer: ServerSnapshot) -> dict[str, Any]:  # noqa: ANN401 - as the method has them
        """The answer from one offer, whole: from a newer one where the folders have changed under it."""
        for _ in range(_MAX_TRIES):
            try:
                return await anyio.to_thread.run_sync(work, offer, params)
            except LargeFileError as large:
                async with self._large_reads:
                    return await anyio.to_thread.run_sync(large.read)
            except StaleSnapshotError as behind:
                answer, newer = behind.answer, await self._live_catalog.wait_for_newer(offer)
            if newer is None:
                break
            offer = newer
        return answer

    # -- the life of a connection ------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _lifespan(self, _: Lowlevel[Any]) -> AsyncIterator[dict[str, Any]]:
        self._live_catalog.start()
        try:
            yield {}
        finally:
            await self._live_catalog.stop()

    async def _handle_handshake(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Put the listing into the first answer; a client that came too early for it is remembered."""
        if ctx.method in _HANDSHAKES:
            offer = (
                await self._live_catalog.get_snapshot_within(self.limits.max_handshake_seconds)
                if self._options.instructions
                else None
            )
            if offer is None and self._options.instructions:
                self._was_late = True
                if (connection := _find_connection(ctx)) is not None:
                    self._late_connections.add(connection)
            self.lowlevel.instructions = await self._write_instructions(offer)
        return await call_next(ctx)

    async def _write_instructions(self, offer: ServerSnapshot | None) -> str | None:
        if not self._options.instructions:
            return None
        if offer is None:
            return write_search_guide(self._options) or None
        return await anyio.to_thread.run_sync(lambda: offer.tools.instructions) or None

    async def _handle_initialized(self, ctx: Context, _: types.NotificationParams) -> None:
        """A client of the older protocol is told of changes unasked, and of the listing if it came too early for it.

        Only now: before its ``initialized`` a client need not listen.
        """
        connection = _find_connection(ctx)
        if connection is None:
            return
        self._older_connections.add(connection)
        if connection in self._late_connections:
            self._late_connections.discard(connection)
            self._start_task(
                self._call_when_loaded(lambda: _notify_older_client(connection, _ALL_CHANGES, self._options))
            )

    async def _handle_listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> HandlerResult:
        uris = dict.fromkeys(params.notifications.resource_subscriptions or ())
        if len(uris) > self.limits.max_subscribed_uris:
            message = f"{len(uris)} files; changes of at most {self.limits.max_subscribed_uris} are told"
            raise MCPError(types.INVALID_PARAMS, message)
        for uri in uris:
            await self._load_manifest(uri)
        return await self.listening(ctx, params)

    async def _load_manifest(self, uri: str) -> None:
        """Know the state of a skill's files, so that a change is noticed."""
        offer = await self._live_catalog.get_snapshot()
        try:
            await anyio.to_thread.run_sync(offer.handlers.load_manifest, uri)
        except SkillError:
            return

    # -- telling of changes ------------------------------------------------------------------------------------------

    def _announce_changes(self, news: SnapshotChanges) -> None:
        self._start_task(self._notify_clients(news))

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        import asyncio  # noqa: PLC0415 - loaded long since

        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _call_when_loaded(self, tell: Callable[[], Awaitable[None]]) -> None:
        """Await ``tell`` once the skills are loaded; not at all where they cannot be, as every request says then."""
        try:
            await self._live_catalog.get_snapshot()
        except Exception:  # noqa: BLE001 - whatever kept them from being loaded was raised where it happened
            return
        await tell()

    def _notify_late_client(self, deliver: DeliverEvent) -> None:
        """Have a client of the current protocol that begins to listen ask again, if any came too early.

        Such clients have no connection by which one could be known again: each is told, which costs it one question.
        """

        async def notify() -> None:
            for event in (ResourcesListChanged(), ToolsListChanged(), PromptsListChanged()):
                deliver(event)

        if self._was_late:
            self._start_task(self._call_when_loaded(notify))

    async def _notify_clients(self, news: SnapshotChanges) -> None:
        if self._new_skills is not None:
            self._new_skills.record_change(news.listed_before)
        await self._bus.publish(ResourcesListChanged())
        for uri in news.updated_uris:
            await self._bus.publish(ResourceUpdated(uri))
        if news.tools:
            await self._bus.publish(ToolsListChanged())
        if news.prompts:
            await self._bus.publish(PromptsListChanged())
        for connection in list(self._older_connections):
            await _notify_older_client(connection, news, self._options)


_ALL_CHANGES = SnapshotChanges(tools=True, prompts=True, updated_uris=())


def _find_connection(ctx: Context) -> Any:  # noqa: ANN401 - the SDK's own
    """The connection of a request; ``None`` where the SDK keeps none, which has no other way to it."""
    return getattr(ctx.session, "_connection", None)


async def _notify_older_client(connection: Any, news: SnapshotChanges, options: ServeOptions) -> None:  # noqa: ANN401 - the SDK's own
    if options.extension:
        await connection.send_resource_list_changed()
    if options.tools and news.tools:
        await connection.send_tool_list_changed()
    if options.prompts and news.prompts:
        await connection.send_prompt_list_changed()
