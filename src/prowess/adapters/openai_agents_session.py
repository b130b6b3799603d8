"""A session of the OpenAI Agents SDK that stores the state of the skills with its items."""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING, Any

from agents import OpenAIConversationsSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents import RunContextWrapper, Session

    from prowess.adapters.openai_agents import Skills


class SkillSession:
    """A session of the SDK that stores the state of the skills in the ``provider_data`` of its items.

    The state of an item is what was true when it was added: removing items goes back to the state before them. The SDK
    does not send ``provider_data`` to OpenAI, and this class returns the items without the state.
    """

    def __init__(self, skills: Skills, session: Session) -> None:
        self._skills = skills
        self._session = session
        # The items of a conversation at OpenAI have a fixed form. Its id is unique, so that it can be the key.
        self._is_stored = not isinstance(session, OpenAIConversationsSession)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the session, such as ``session_id``."""
        return getattr(self._session, name)

    async def get_items(self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None) -> list[Any]:
        """Return the items; for a run of the SDK, the conversation goes on in the state that they have."""
        items = await self._session.get_items(limit)
        if wrapper is not None:
            entry = next(filter(None, map(self._find_entry, reversed(items))), None)
            # Session ids may repeat from one database to another, so the key has a part that does not.
            key = f"{self._session.session_id} {token_hex(8)}" if self._is_stored else self._session.session_id
            self._skills.open_run(wrapper, entry=entry or {"key": key, "saved": ""})
        return [self._strip_item(item) for item in items]

    async def add_items(self, items: list[Any], *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Add items, the last one that can have it with the state of the conversation."""
        items = list(items)
        run = None if wrapper is None else self._skills.open_run(wrapper)
        # Where nobody uses skills any more, the SDK takes these two for messages and thoughts of another provider.
        places = [index for index, item in enumerate(items) if item.get("type") not in {None, "reasoning"}]
        # A conversation without a key is not that of this session: its run came back without knowing the session.
        if run is not None and run.conversation.key and places and self._is_stored:
            item = items[places[-1]]
            data = {**(item.get("provider_data") or {}), self._skills.entry_name: self._skills.save_run(run)}
            items[places[-1]] = {**item, "provider_data": data}
        await self._session.add_items(items)

    async def pop_item(self, *, wrapper: RunContextWrapper[Any] | None = None) -> Any:
        """Remove the last item, and return it; ``None`` when there is none."""
        item = await self._session.pop_item()
        return item if item is None else self._strip_item(item)

    async def clear_session(self, *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Remove all items; the next run begins a new conversation."""
        await self._session.clear_session()

    def _find_entry(self, item: Mapping[str, Any]) -> object:
        return (item.get("provider_data") or {}).get(self._skills.entry_name)

    def _strip_item(self, item: dict[str, Any]) -> dict[str, Any]:
        if self._find_entry(item) is None:
            return item
        others = {key: value for key, value in item["provider_data"].items() if key != self._skills.entry_name}
        rest = {key: value for key, value in item.items() if key != "provider_data"}
        return {**rest, "provider_data": others} if others else rest
