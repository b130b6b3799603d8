"""A server of skills for MCP clients: the skills extension, tools and prompts over the official SDK."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
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

from prowess.errors import SkillError
from prowess.limits import DEFAULT_LIMITS
from prowess.mcp.answers import BehindError, LargeError
from prowess.mcp.keeper import BUDGET, keeper_of
from prowess.mcp.pages import complete
from prowess.mcp.tools import LATER

if TYPE_CHECKING:
    import os
    from asyncio import Task
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from prowess.library.catalog import Catalog
    from prowess.library.changes import Notice
    from prowess.limits import Limits
    from prowess.mcp.keeper import News, Offer

    Context = ServerRequestContext[Any, Any]
    Handler = Callable[[Context, Any], Awaitable[HandlerResult]]
    Work = Callable[[Offer, Any], dict[str, Any]]

EXTENSION = "io.modelcontextprotocol/skills"
_OUR_FAULT = frozenset(("unreadable", "unreadable-directory", "changed-during-read"))
_TRIES = 5
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
    "tools/call": (
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


class Parts(NamedTuple):
    """What a server offers; each can be switched off."""

    extension: bool = True
    """The skills extension, and the files as resources."""
    tools: bool = True
    instructions: bool = True
    """The listing for models, in the answer to the handshake."""
    prompts: bool = True


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


class Server:
    """Skills below folders (none named: the standard places), or of a catalogue, for MCP clients.

    ``extension``, ``tools``, ``instructions`` and ``prompts`` switch the parts. ``budget``: tokens for the listing in
    the instructions. ``notice``: how changes on disk are noticed (as for ``watch``), ``None`` for not at all.
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
        budget: int | None = BUDGET,
        notice: Notice | None = "auto",
        show_folders: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or DEFAULT_LIMITS
        self._parts = Parts(extension, tools, instructions, prompts)
        self._keeper = keeper_of(roots, catalog, self.limits, budget=budget, show_folders=show_folders, notice=notice)
        self._keeper.announce = self._announce
        self._bus = InMemorySubscriptionBus()
        self.listening = ListenHandler(self._bus, max_subscriptions=self.limits.max_http_streams)
        self._large = anyio.Semaphore(self.limits.max_large_reads)
        self._older: WeakSet[Any] = WeakSet()
        self._tasks: set[Task[None]] = set()
        self.lowlevel = self._built()

    def tell_left_out(self, told: Callable[[int], None]) -> None:
        """Call ``told`` with how many skills are not served, as soon as they are loaded, if there are any."""
        self._keeper.when_loaded(lambda shelf: told(shelf.left_out) if shelf.left_out else None)

    # -- what the SDK is given ---------------------------------------------------------------------------------------

    def _built(self) -> _Lowlevel:
        from prowess import __version__  # noqa: PLC0415 - the package imports its parts, not the other way round

        made = _Lowlevel("prowess", version=__version__, lifespan=self._alive, get_tool_input_schema=lambda _: None)
        made.middleware.append(self._shake_hands)
        for method, params, handler in self._handlers():
            made.add_request_handler(method, params, handler)
        made.add_notification_handler("notifications/initialized", types.NotificationParams, self._met)
        if self._parts.extension:
            made.extensions[EXTENSION] = {"directoryRead": True}
        return made

    def _handlers(self) -> Iterator[tuple[str, type[Any], Handler]]:
        on = {part for part, value in self._parts._asdict().items() if value}
        for method, (needs, params, work) in METHODS.items():
            if not on.isdisjoint(needs):
                yield method, params, self._answering(work)
        yield "subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen

    def _answering(self, work: Work) -> Handler:
        """A handler that answers from the offer of the moment, in a thread, since files are read."""

        async def handle(_: Context, params: Any) -> dict[str, Any]:  # noqa: ANN401 - as the method has them
            try:
                return await self._answer(work, params)
            except SkillError as error:
                code = types.INTERNAL_ERROR if error.code in _OUR_FAULT else types.INVALID_PARAMS
                raise MCPError(code, error.message) from None
            except Exception:
                logger.exception("a request could not be answered")
                raise MCPError(types.INTERNAL_ERROR, "Internal error") from None

        return handle

    async def _answer(self, work: Work, params: Any) -> dict[str, Any]:  # noqa: ANN401 - as the method has them
        """The answer from one offer, whole: from a newer one where the folders have changed under it."""
        offer = await self._keeper.offer()
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
        """Put the listing into the first answer, if it is there in time."""
        if ctx.method in _HANDSHAKES:
            self.lowlevel.instructions = await self._instructions()
        return await call_next(ctx)

    async def _instructions(self) -> str | None:
        if not self._parts.instructions:
            return None
        offer = await self._keeper.settle(self.limits.max_handshake_seconds)
        if offer is None:
            return LATER if self._parts.tools else None
        return await anyio.to_thread.run_sync(lambda: offer.tools.instructions) or None

    async def _met(self, ctx: Context, _: types.NotificationParams) -> None:
        """A client of the older protocol is told of changes unasked."""
        connection = getattr(ctx.session, "_connection", None)  # the SDK has no other way to a connection
        if connection is not None:
            self._older.add(connection)

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
        import asyncio  # noqa: PLC0415 - loaded long since

        task = asyncio.get_running_loop().create_task(self._tell(news))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, news: News) -> None:
        await self._bus.publish(ResourcesListChanged())
        for uri in news.updated:
            await self._bus.publish(ResourceUpdated(uri))
        if news.tools:
            await self._bus.publish(ToolsListChanged())
        if news.prompts:
            await self._bus.publish(PromptsListChanged())
        for connection in list(self._older):
            await _tell_older(connection, news, self._parts)


async def _tell_older(connection: Any, news: News, parts: Parts) -> None:  # noqa: ANN401 - the SDK's own
    if parts.extension:
        await connection.send_resource_list_changed()
    if parts.tools and news.tools:
        await connection.send_tool_list_changed()
    if parts.prompts and news.prompts:
        await connection.send_prompt_list_changed()
