"""Skills for CrewAI: ``Agent(..., backstory=skills.prompt(), tools=skills.tools())``.

CrewAI gives a tool neither the agent that calls it nor the user. So ``tools()`` begins a conversation, which all of its
tools share; ``tools("ann")`` goes on with the conversation of that key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from prowess.adapters.core import SkillsAdapter, require_package

require_package("crewai", "crewai>=1.15")

from crewai.tools import BaseTool
from crewai.tools.tool_failure import ToolFailure
from pydantic import Field, PrivateAttr, create_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from prowess.adapters.core import Conversation
    from prowess.tools.definitions import ToolDefinition, ToolResult

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w-]*)\}")
_TYPES = {"string": str, "integer": int, "array": list[str]}
"""What the parameters of skill tools are in Python."""


class Skills(SkillsAdapter):
    """Skills for the agents of CrewAI: the listing for their backstory, and tools."""

    can_run_children = False
    can_enforce = False

    def prompt(self, query: str = "", *, key: str = "", context: object = None) -> str:
        """Return the block for a backstory, as a new conversation gets it for ``query``.

        A description with ``{topic}`` has ``{ topic }`` here: CrewAI takes the former for one of the inputs of a crew.
        """
        return _PLACEHOLDER.sub(r"{ \1 }", super().prompt(query, key=key, context=context))

    def tools(self, key: str = "", *, context: object = None) -> list[BaseTool]:
        """Return the skill tools of one conversation: a new one, or with ``key`` the one of that key.

        ``context``: what a ``scope`` is to know of the user; CrewAI passes nothing to its tools.
        """
        conversation = self.conversations.open(key or None, context=context)
        return [make_tool(conversation, definition) for definition in conversation.toolset.possible_tools()]


class SkillTool(BaseTool):
    """One skill tool of one conversation."""

    _conversation: Conversation = PrivateAttr()

    def _run(self, **arguments: Any) -> str | ToolFailure:
        return _to_crewai(self._conversation.call(self.name, _drop_missing(arguments), may_ask=False))

    async def _arun(self, **arguments: Any) -> str | ToolFailure:
        return _to_crewai(await self._conversation.acall(self.name, _drop_missing(arguments), may_ask=False))


def make_tool(conversation: Conversation, definition: ToolDefinition) -> SkillTool:
    """Return a skill tool as a tool of CrewAI."""
    tool = SkillTool(
        name=definition.name,
        description=definition.description,
        args_schema=_make_model(definition),
        cache_function=may_cache,
    )
    tool._conversation = conversation  # noqa: SLF001 - pydantic takes no private fields when it makes one
    return tool


def may_cache(_arguments: Any = None, _result: Any = None) -> bool:
    """Return that no result may be used again: skills change, and each run of a script is a run."""
    return False


def _make_model(definition: ToolDefinition) -> type[BaseModel]:
    """Return the parameters of a tool as a model of pydantic, without the names of skills, which may change."""
    required = definition.parameters["required"]
    fields: dict[str, Any] = {
        name: (
            _TYPES[schema["type"]] if name in required else _TYPES[schema["type"]] | None,
            Field(... if name in required else None, description=schema["description"]),
        )
        for name, schema in definition.parameters["properties"].items()
    }
    return create_model(definition.name, **fields)


def _drop_missing(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _to_crewai(result: ToolResult) -> str | ToolFailure:
    return ToolFailure(message=result.content) if result.is_error else result.content
