"""What a dialect is: its tools, its prompt block, and how it puts errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.tools import acting_tools
from prowess.tools.content import preload_written

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from prowess.model import DialectName
    from prowess.runtime.activation import Activation
    from prowess.tools.definitions import ToolDefinition, ToolResult
    from prowess.tools.view import View

    Handler = Callable[["View", Mapping[str, Any]], ToolResult]
    Describe = Callable[["View"], ToolDefinition]
    Offered = Callable[["View"], bool]


class Tool(NamedTuple):
    """One tool of a dialect: its name, its definition for the skills at hand, its answers, and when it is offered.

    A handler gives a result or raises; the toolset turns what is raised into a result by the dialect's ``error``.
    """

    name: str
    describe: Describe
    handler: Handler
    offered: Offered


class Dialect(NamedTuple):
    """Tools, prompt, and how an error that no handler foresaw is put."""

    name: DialectName
    tools: tuple[Tool, ...]
    prompt: Callable[[View], str]
    error: Callable[[str, Exception], ToolResult]
    preloaded: Callable[[Activation], str] = preload_written
    """How instructions that are there from the start stand in the prompt."""
    loads_hidden: bool = True
    """Whether its tool loads a skill that is not shown to models, when it is called all the same."""

    @property
    def forks(self) -> bool:
        """Whether it has a tool that runs skills as sub-agents."""
        return any(tool.handler is acting_tools.run_skill for tool in self.tools)

    @property
    def runs_scripts(self) -> bool:
        """Whether it has a tool that runs scripts."""
        return any(tool.handler is acting_tools.run_script for tool in self.tools)
