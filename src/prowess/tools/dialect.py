"""The parts that make up a dialect: its tools, its prompt block, and the rendering of errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.tools import acting_tools
from prowess.tools.content import render_preload_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from prowess.conversation.activation import Activation
    from prowess.literals import DialectName
    from prowess.tools.definitions import ToolDefinition, ToolResult
    from prowess.tools.view import View

    ToolHandler = Callable[["View", Mapping[str, Any]], ToolResult]
    DescribeTool = Callable[["View"], ToolDefinition]
    IsOffered = Callable[["View"], bool]


class Tool(NamedTuple):
    """A tool of a dialect: its name, its definition for the current skills, its handler, and when it is offered.

    A handler returns a result or raises; the toolset turns an exception into a result with the dialect's
    ``render_error``.
    """

    name: str
    describe: DescribeTool
    handler: ToolHandler
    is_offered: IsOffered


class Dialect(NamedTuple):
    """The names, shapes and texts of one system's tools; the first tool is the one that loads a skill."""

    name: DialectName
    tools: tuple[Tool, ...]
    render_prompt: Callable[[View], str]
    render_error: Callable[[str, Exception], ToolResult]
    render_preload: Callable[[Activation], str] = render_preload_source
    """Renders the instructions of a preloaded skill for the prompt."""
    loads_hidden: bool = True
    """Whether its tool loads a skill that is hidden from models, when a model names it nevertheless."""
    selects_by_default: bool = False
    """Whether the default selector of a session counts: the systems of other dialects show every skill."""
    has_index_tool: bool = False
    """Whether the listing can stand in the description of a tool."""

    @property
    def has_fork_tool(self) -> bool:
        """Whether the dialect has a tool that runs skills as sub-agents."""
        return any(tool.handler is acting_tools.run_skill for tool in self.tools)

    @property
    def has_script_tool(self) -> bool:
        """Whether the dialect has a tool that runs scripts."""
        return any(tool.handler is acting_tools.run_script for tool in self.tools)
