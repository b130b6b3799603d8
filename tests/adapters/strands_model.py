"""A model of Strands that plays a script and keeps what it was asked."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from strands.models import Model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable


class Request(NamedTuple):
    """What a model got for one request."""

    messages: Any
    tools: dict[str, Any]
    system: str


class ScriptedModel(Model):
    """Plays moves: a text is an answer, a list of (tool, arguments) are calls."""

    def __init__(self, moves: Iterable[str | list[tuple[str, Any]]]) -> None:
        self.moves = iter(moves)
        self.requests: list[Request] = []

    def update_config(self, **model_config: Any) -> None:
        """Do nothing: a script has no settings."""

    def get_config(self) -> dict[str, Any]:
        """Return no settings."""
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        """Raise: no test asks for it."""
        raise NotImplementedError

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: str | None = None, **_: Any
    ) -> AsyncIterator[Any]:
        """Yield the events of the next move."""
        tools = {spec["name"]: spec for spec in tool_specs or []}
        self.requests.append(Request(copy.deepcopy(messages), tools, system_prompt or ""))
        move = next(self.moves)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(move, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": move}}}
            yield {"contentBlockStop": {}}
        for number, (name, arguments) in enumerate(() if isinstance(move, str) else move):
            call_id = f"call-{len(self.requests)}-{number}"
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": call_id}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(move, str) else "tool_use"}}


def find_results(messages: Any) -> list[Any]:
    """Return the results of tools in messages, in their order."""
    blocks = [block for message in messages for block in message["content"]]
    return [block["toolResult"] for block in blocks if "toolResult" in block]
