"""Skills for Anthropic's own client: the whole loop of an agent over the Messages API in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from prowess.adapters.messages_format import MessagesFormat

if TYPE_CHECKING:
    from prowess.tools.shapes import AnthropicTool

require_package("anthropic", "anthropic>=0.60")

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


class Skills(MessageSkills):
    """Skills for an ``Anthropic`` client, or another with ``messages.create``, plain or asynchronous."""

    def _pick_format(self, options: dict[str, Any]) -> MessagesFormat:
        return MessagesFormat()

    def tools(self) -> list[AnthropicTool]:
        """Return each skill tool that a conversation can be offered, in the shape of the Messages API."""
        return [tool.to_anthropic() for tool in self.list_definitions()]
