"""Skills for OpenAI's own client: the whole loop of an agent over Chat Completions or Responses in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from prowess.adapters.chat_format import ChatFormat
from prowess.adapters.core import require_package
from prowess.adapters.message_skills import MessageSkills, RunStream
from prowess.adapters.message_types import (
    CallEvent,
    HostTool,
    ModelCall,
    PartialRun,
    PendingCall,
    ResultEvent,
    RunResult,
    TextEvent,
    Usage,
)
from prowess.adapters.responses_format import ResponsesFormat
from prowess.arguments import raise_bad_argument

if TYPE_CHECKING:
    from prowess.tools.shapes import OpenAIResponsesTool, OpenAITool

require_package("openai", "openai>=1.70")

__all__ = [
    "CallEvent",
    "HostTool",
    "ModelCall",
    "PartialRun",
    "PendingCall",
    "ResultEvent",
    "RunResult",
    "RunStream",
    "Skills",
    "TextEvent",
    "Usage",
]

_FORMATS: dict[str, ChatFormat | ResponsesFormat] = {"chat": ChatFormat(), "responses": ResponsesFormat()}


class Skills(MessageSkills):
    """Skills for an ``OpenAI`` client, or another that is compatible with it, plain or asynchronous.

    ``run``, ``arun`` and ``stream`` take ``api`` besides: ``"chat"``, the default, for Chat Completions, which nearly
    every provider offers, or ``"responses"`` for Responses.
    """

    def _pick_format(self, options: dict[str, Any]) -> ChatFormat | ResponsesFormat:
        api = options.pop("api", "chat")
        if api not in _FORMATS:
            raise_bad_argument("api", "is 'chat' or 'responses'", api)
        return _FORMATS[api]

    @overload
    def tools(self, api: Literal["chat"] = "chat") -> list[OpenAITool]: ...

    @overload
    def tools(self, api: Literal["responses"]) -> list[OpenAIResponsesTool]: ...

    def tools(self, api: Literal["chat", "responses"] = "chat") -> list[OpenAITool] | list[OpenAIResponsesTool]:
        """Return each skill tool that a conversation can be offered, in the shape of one of the two APIs."""
        if api == "responses":
            return [tool.to_openai_responses() for tool in self.list_definitions()]
        return [tool.to_openai() for tool in self.list_definitions()]
