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
from prowess.mcp.handlers import BehindError, LargeError, OutdatedError
from prowess.mcp.listing import write_arrivals, write_pointer
from prowess.mcp.live_catalog import News, keeper_of
from prowess.mcp.new_skills import Arrivals
from prowess.mcp.options import BUDGET, MAX_CHARS, PARTS, PLACES, make_options
from prowess.mcp.pagination import complete

if TYPE_CHECKING:
    import os
    from asyncio import Task
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.subscriptions import ServerEvent

    from prowess.discovery.file_changes import Notice
    from prowess.limits import Limits
    from prowess.mcp.live_catalog import Offer
    from prowess.mcp.options import ServeOptions
    from prowess.mcp.served_skills import LeftOut, Shelf
    from prowess.skills.catalog import Catalog

    Context = ServerRequestContext[Any, Any]
    Handler = Callable[[Context, Any], Awaitable[HandlerResult]]
    Deliver = Callable[[ServerEvent], None]
    Work = Callable[[Offer, Any], dict[str, Any]]

EXTENSION = "io.modelcontextprotocol/skills"
_OF_EXTENSION = frozenset(("skills/list", "skills/get", "resources/directory/read"))
_OUR_FAULT = frozenset(("unreadable", "unreadable-directory", "changed-during-read"))
_TRIES = 5
_CALL = "tools/call"
_HANDSHAKES = frozenset(("initialize", "server/discover"))

logger = logging.getLogger("prowess.mcp")


class GetParams(types.RequestParams):
    """Which skill: the address of its SKILL.md."""

    uri: str


class FolderParams(types.PaginatedRequestParams):
    """Which folder."""

    uri: str


def _completed(offer: Offer, params: Any) -> dict[str, Any]:  # noqa: ANN401 - the SDK's own
    said: Mapping[str, str] = (params.context.arguments if params.context else None) or {}
    ref = params.ref.model_dump(by_alias=True, mode="json")
    return offer.prompts.complete(ref, params.argument.name, params.argument.value, said)


_EXTENSION, _TOOLS, _PROMPTS = ("extension",), ("tools",), ("prompts",)
_PAGED = types.PaginatedRequestParams

METHODS: dict[str, tuple[tuple[str, ...], type[Any], Work]] = {
    "skills/list": (_EXTENSION, _PAGED, lambda offer, p: offer.answers.list_skills(p.cursor)),
    "skills/get": (_EXTENSION, GetParams, lambda offer, p: offer.answers.get_skill(p.uri)),
    "resources/directory/read": (
        _EXTENSION,
        FolderParams,
        lambda offer, p: offer.answers.read_directory(p.uri, p.cursor),
    ),
    "resources/list": (_EXTENSION, _PAGED, lambda offer, p: offer.answers.list_resources(p.cursor)),
    "resources/templates/list": (_EXTENSION, _PAGED, lambda offer, _: offer.answers.list_templates()),
    "resources/read": (
        _EXTENSION,
        types.ReadResourceRequestParams,
        lambda offer, p: offer.answers.read_resource(p.uri),
    ),
    "tools/list": (_TOOLS, _PAGED, lambda offer, _: complete("tools", [*offer.tools.definitions], None)),
    _CALL: (
        _TOOLS,
        types.CallToolRequestParams,
        lambda offer, p: offer.tools.call(p.name, p.arguments or {}),
    ),
    "prompts/list": (_PROMPTS, _PAGED, lambda offer, p: offer.prompts.page(p.cursor)),
    "prompts/get": (
        _PROMPTS,
        types.GetPromptRequestParams,
        lambda offer, p: offer.prompts.get(p.name, p.arguments or {}),
    ),
    "completion/complete": ((*_EXTENSION, *_PROMPTS), types.CompleteRequestParams, _completed),
}
"""Every method: the parts that need it, its parameters, and the answer from an offer."""


class _Lowlevel(Lowlevel[Any]):
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


class _Bus(InMemorySubscriptionBus):
    """The SDK's, which says who begins to listen."""

    def __init__(self, began: Callable[[Deliver], None]) -> None:
        super().__init__()
        self._began = began

    def subscribe(self, listener: Deliver) -> Callable[[], None]:
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
        listing: Iterable[str] = PLACES,
        budget: int | None = BUDGET,
        max_chars: int | None = MAX_CHARS,
        notice: Notice | None = "auto",
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
        self._keeper = keeper_of(roots, catalog, self.limits, self._options, notice=notice)
        self._keeper.announce = self._announce
        self._bus = _Bus(self._tell_late)
        self.listening = ListenHandler(self._bus, max_subscriptions=self.limits.max_http_streams)
        self._large = anyio.Semaphore(self.limits.max_large_reads)
        self._older: WeakSet[Any] = WeakSet()
        self._late: WeakSet[Any] = WeakSet()
        self._was_late = False
        self._arrivals: Arrivals | None = None
        self._tasks: set[Task[None]] = set()
        self.lowlevel = self._built()

    def tell_left_out(self, tell: Callable[[LeftOut], None]) -> None:
        """Call ``tell`` with how many skills are not served, as soon as they are loaded, if there are any."""

        def count(shelf: Shelf) -> None:
            left_out = shelf.left_out if self._options.extension else shelf.left_out._replace(extension=0)
            if any(left_out):
                tell(left_out)

        self._keeper.when_loaded(count)

    def tell_arrivals(self) -> None:
        """Tell of skills that come from now on, once, in the answer to the next call of a tool.

        For a server of one client: another could not know what the first was told. Nothing is told where whoever
        set up the server wants no listing.
        """
        if any(map(self._options.lists_in, PLACES)):
            self._arrivals = Arrivals()

    # -- what the SDK is given ---------------------------------------------------------------------------------------

    def _built(self) -> _Lowlevel:
        from prowess import __version__  # noqa: PLC0415 - the package imports its parts, not the other way round

        made = _Lowlevel("prowess", version=__version__, lifespan=self._alive, get_tool_input_schema=lambda _: None)
        made.middleware.append(self._shake_hands)
        for method, params, handler in self._handlers():
            made.add_request_handler(method, params, handler)
        made.add_notification_handler("notifications/initialized", types.NotificationParams, self._met)
        if self._options.extension:
            made.extensions[EXTENSION] = {"directoryRead": True}
        return made

    def _handlers(self) -> Iterator[tuple[str, type[Any], Handler]]:
        on = {part for part in PARTS if getattr(self._options, part)}
        for method, (needs, params, work) in METHODS.items():
            if not on.isdisjoint(needs):
                yield method, params, self._answering(method, work)
        yield "subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen

    def _answering(self, method: str, work: Work) -> Handler:
        """A handler that answers from the offer of the moment, in a thread, since files are read."""

        async def handle(ctx: Context, params: Any) -> dict[str, Any]:  # noqa: ANN401 - as the method has them
            # The older protocols cannot declare an extension, and a method that nobody declared is none.
            if method in _OF_EXTENSION and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                raise MCPError(types.METHOD_NOT_FOUND, "Method not found", method)
            try:
                answer = await self._answer_from_disk(work, params)
                return await self._add_arrivals(answer, params.arguments) if method == _CALL else answer
            except SkillError as error:
                code = types.INTERNAL_ERROR if error.code in _OUR_FAULT else types.INVALID_PARAMS
                raise MCPError(code, error.message) from None
            except Exception:
                logger.exception("a request could not be answered")
                raise MCPError(types.INTERNAL_ERROR, "Internal error") from None

        return handle

    async def _add_arrivals(self, answer: dict[str, Any], arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """The answer to a call of a tool, and behind it the new skills that the model may not have been shown."""
        if self._arrivals is None or answer.get("isError"):
            return answer
        listed = (await self._keeper.offer()).tools.listed
        new = self._arrivals.take_new(listed, (arguments or {}).get("name"))
        if not new:
            return answer
        text = await anyio.to_thread.run_sync(write_arrivals, new, self._options)  # thousands may have come at once
        return {**answer, "content": [*answer["content"], {"type": "text", "text": text}]}

    async def _answer_from_disk(self, work: Work, params: Any) -> dict[str, Any]:  # noqa: ANN401 - as the method has them
        """The answer; where it is a refusal, or about a skill that has changed, that of what is on the disk now.

        A skill that was made, mended, broken or renamed a moment ago may not have been noticed yet, and a client that
        hears that there is none does not ask again.
        """
        refusal: SkillError | None = None
        answer: dict[str, Any] = {}
        try:
            answer = await self._answer(work, params, await self._keeper.offer())
            if not answer.get("isError"):
                return answer
        except OutdatedError as outdated:
            answer = outdated.answer
        except SkillError as error:
            refusal = error
        if (offer := await self._keeper.look()) is not None:
            try:
                return await self._answer(work, params, offer)
            except OutdatedError as outdated:  # changed once more, since this was asked
                return outdated.answer
        if refusal is not None:
            raise refusal
        return answer

    async def _answer(self, work: Work, params: Any, offer: Offer) -> dict[str, Any]:  # noqa: ANN401 - as the method has them
        """The answer from one offer, whole: from a newer one where the folders have changed under it."""
        for _ in range(_TRIES):
            try:
                return await anyio.to_thread.run_sync(work, offer, params)
            except LargeError as large:
                async with self._large:
                    return await anyio.to_thread.run_sync(large.read)
            except BehindError as behind:
                answer, newer = behind.answer, await self._keeper.newer(offer)
            if newer is None:
                break
            offer = newer
        return answer

    # -- the life of a connection ------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _alive(self, _: Lowlevel[Any]) -> AsyncIterator[dict[str, Any]]:
        self._keeper.start()
        try:
            yield {}
        finally:
            await self._keeper.stop()

    async def _shake_hands(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Put the listing into the first answer; a client that came too early for it is remembered."""
        if ctx.method in _HANDSHAKES:
            offer = await self._keeper.settle(self.limits.max_handshake_seconds) if self._options.instructions else None
            if offer is None and self._options.instructions:
                self._was_late = True
                if (connection := _connection_of(ctx)) is not None:
                    self._late.add(connection)
            self.lowlevel.instructions = await self._instructions(offer)
        return await call_next(ctx)

    async def _instructions(self, offer: Offer | None) -> str | None:
        if not self._options.instructions:
            return None
        if offer is None:
            return write_pointer(self._options) or None
        return await anyio.to_thread.run_sync(lambda: offer.tools.instructions) or None

    async def _met(self, ctx: Context, _: types.NotificationParams) -> None:
        """A client of the older protocol is told of changes unasked, and of the listing if it came too early for it.

        Only now: before its ``initialized`` a client need not listen.
        """
        connection = _connection_of(ctx)
        if connection is None:
            return
        self._older.add(connection)
        if connection in self._late:
            self._late.discard(connection)
            self._begin(self._when_offered(lambda: _tell_older(connection, _EVERYTHING, self._options)))

    async def _listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> HandlerResult:
        uris = dict.fromkeys(params.notifications.resource_subscriptions or ())
        if len(uris) > self.limits.max_subscribed_uris:
            message = f"{len(uris)} files; changes of at most {self.limits.max_subscribed_uris} are told"
            raise MCPError(types.INVALID_PARAMS, message)
        for uri in uris:
            await self._remember(uri)
        return await self.listening(ctx, params)

    async def _remember(self, uri: str) -> None:
        """Know the state of a skill's files, so that a change is noticed."""
        offer = await self._keeper.offer()
        try:
            await anyio.to_thread.run_sync(offer.answers.remember, uri)
        except SkillError:
            return

    # -- telling of changes ------------------------------------------------------------------------------------------

    def _announce(self, news: News) -> None:
        self._begin(self._tell(news))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        import asyncio  # noqa: PLC0415 - loaded long since

        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _when_offered(self, tell: Callable[[], Awaitable[None]]) -> None:
        """Await ``tell`` once the skills are loaded; not at all where they cannot be, as every request says then."""
        try:
            await self._keeper.offer()
        except Exception:  # noqa: BLE001 - whatever kept them from being loaded was raised where it happened
            return
        await tell()

    def _tell_late(self, deliver: Deliver) -> None:
        """Have a client of the current protocol that begins to listen ask again, if any came too early.

        Such clients have no connection by which one could be known again: each is told, which costs it one question.
        """

        async def tell() -> None:
            for event in (ResourcesListChanged(), ToolsListChanged(), PromptsListChanged()):
                deliver(event)

        if self._was_late:
            self._begin(self._when_offered(tell))

    async def _tell(self, news: News) -> None:
        if self._arrivals is not None:
            self._arrivals.note_change(news.listed_before)
        await self._bus.publish(ResourcesListChanged())
        for uri in news.updated:
            await self._bus.publish(ResourceUpdated(uri))
        if news.tools:
            await self._bus.publish(ToolsListChanged())
        if news.prompts:
            await self._bus.publish(PromptsListChanged())
        for connection in list(self._older):
            await _tell_older(connection, news, self._options)


_EVERYTHING = News(tools=True, prompts=True, updated=())


def _connection_of(ctx: Context) -> Any:  # noqa: ANN401 - the SDK's own
    """The connection of a request; ``None`` where the SDK keeps none, which has no other way to it."""
    return getattr(ctx.session, "_connection", None)


async def _tell_older(connection: Any, news: News, options: ServeOptions) -> None:  # noqa: ANN401 - the SDK's own
    if options.extension:
        await connection.send_resource_list_changed()
    if options.tools and news.tools:
        await connection.send_tool_list_changed()
    if options.prompts and news.prompts:
        await connection.send_prompt_list_changed()
