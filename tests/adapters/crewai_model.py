"""A model of CrewAI that plays a script and keeps what it was asked."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from crewai import BaseLLM
from pydantic import PrivateAttr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class ScriptedModel(BaseLLM):
    """Plays moves: a text is an answer, a list of (tool, arguments) are calls."""

    _moves: Iterator[Any] = PrivateAttr()
    _requests: list[Any] = PrivateAttr(default_factory=list)

    def __init__(self, moves: Iterable[str | list[tuple[str, Any]]]) -> None:
        super().__init__(model="scripted")
        self._moves = iter(moves)

    @property
    def requests(self) -> list[Any]:
        """The messages of each request."""
        return self._requests

    def supports_function_calling(self) -> bool:
        """Return that the model calls tools itself."""
        return True

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        """Return the next move."""
        self._requests.append(copy.deepcopy(messages))
        move = next(self._moves)
        if isinstance(move, str):
            return move
        return [
            {"id": f"call-{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for number, (name, arguments) in enumerate(move)
        ]

    async def acall(self, messages: Any, *more: Any, **named: Any) -> Any:
        """Return the next move."""
        return self.call(messages, *more, **named)


def find_results(messages: Any) -> list[str]:
    """Return the results of tools in messages, in their order."""
    return [str(message["content"]) for message in messages if message["role"] == "tool"]
