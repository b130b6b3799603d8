"""A tool as a model is told of it, in the shapes that providers want, and what a call gives back."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.runtime.fork import PreparedFork
    from prowess.runtime.trust import TrustRequest


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool: its name, what it does, its parameters as JSON Schema, and whether calls may run side by side."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    parallel: bool = True
    title: str = ""
    read_only: bool = True
    output: Mapping[str, Any] | None = None
    """What a result looks like, as JSON Schema, where it is JSON."""

    def to_json_schema(self) -> dict[str, Any]:
        """Name, description and parameters."""
        return {"name": self.name, "description": self.description, "parameters": self._schema()}

    def to_openai(self) -> dict[str, Any]:
        """For the Chat Completions API."""
        return {"type": "function", "function": self.to_json_schema()}

    def to_openai_responses(self) -> dict[str, Any]:
        """For the Responses API."""
        return {"type": "function", **self.to_json_schema()}

    def to_anthropic(self) -> dict[str, Any]:
        """For the Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self._schema()}

    def to_mcp(self) -> dict[str, Any]:
        """For the Model Context Protocol's ``tools/list``."""
        hints = {"title": self.title} if self.title else {}
        shape = {"outputSchema": deepcopy(dict(self.output))} if self.output else {}
        return {
            "name": self.name,
            **hints,
            "description": self.description,
            "inputSchema": self._schema(),
            **shape,
            "annotations": {"readOnlyHint": self.read_only},
        }

    def _schema(self) -> dict[str, Any]:
        return deepcopy(dict(self.parameters))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gives: text for the model, whether it is an error, and the same as data for the host."""

    content: str
    is_error: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)
    fork: PreparedFork | None = None
    """What the host is to run as a sub-agent, where it asked for that (``fork="host"``)."""
    pending: TrustRequest | None = None
    """What a person is to decide on before the call does anything (``Trust(policy="defer")``); nothing has run."""


def text(description: str = "", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON Schema keywords
    """A string parameter."""
    return {"type": "string", **({"description": description} if description else {}), **more}


def schema(properties: Mapping[str, Any], required: tuple[str, ...], *, closed: bool = False) -> dict[str, Any]:
    """An object of parameters; ``closed``: no others are allowed."""
    made: dict[str, Any] = {"type": "object", "properties": dict(properties), "required": list(required)}
    if closed:
        made["additionalProperties"] = False
    return made
