"""Notifications: how connected clients learn that skills, tools or prompts have changed.

Clients of the current protocol subscribe to a bus. Clients of the older protocols are notified unasked, each over its
own connection. A client whose handshake was answered before the skills were loaded is notified once they are.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

from prowess.mcp.live_catalog import SnapshotChanges

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

    from mcp.server.context import ServerRequestContext
    from mcp.server.subscriptions import ServerEvent

    from prowess.mcp.live_catalog import LiveCatalog
    from prowess.mcp.options import ServeOptions

    DeliverEvent = Callable[[ServerEvent], None]

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


class ChangeNotifier:
    """Tells the clients of one server about changes."""

    def __init__(self, live_catalog: LiveCatalog, options: ServeOptions) -> None:
        self.bus = _SubscriptionBus(self._notify_late_subscriber)
        self._live_catalog = live_catalog
        self._options = options
        # Weak, so that a connection that the SDK has dropped is not kept alive by those who would notify it.
        self._older_connections: WeakSet[Any] = WeakSet()
        self._late_connections: WeakSet[Any] = WeakSet()
        self._was_late = False
        self._is_next_late = False
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

    def record_old_answers(self) -> None:
        """Tell the only client to ask for everything again, since its first answers do not hold any more.

        It is notified now if it listens already, and otherwise as soon as it begins to.
        """
        listening = list(self._older_connections)
        self._was_late, self._is_next_late = True, not listening
        self._start_task(self._notify_clients(_ALL_CHANGES, listening))

    def begin_notifying(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Notify a client of an older protocol from now on, and at once when its handshake came too early.

        A client need not listen before it has sent ``initialized``, so nothing is sent earlier.
        """
        connection = _find_connection(ctx)
        if connection is None:
            return
        self._older_connections.add(connection)
        if connection in self._late_connections or self._is_next_late:
            self._late_connections.discard(connection)
            self._is_next_late = False
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
