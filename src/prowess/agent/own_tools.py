"""The agent's own tools: ``Read`` and ``Write`` for files of the working folder, ``Bash`` for commands in a sandbox."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic_ai import Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import BinaryContent
from pydantic_ai.toolsets import FunctionToolset

from prowess.adapters.pydantic_ai import find_child
from prowess.agent.approval import ToolRequest
from prowess.errors import SkillError
from prowess.spec.tool_rules import parse_tool_pattern
from prowess.thread_work import run_in_thread
from prowess.tools.acting_tools import render_script_result
from prowess.tools.arguments import BadArgumentsError, optional_count, required_text
from prowess.tools.file_ranges import DEFAULT_LINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.agent.approval import ToolGate
    from prowess.agent.work_folder import WorkFolder
    from prowess.runtime.acting.scripts import Scripts

OWN_TOOLS = ("Read", "Write", "Bash")

_PATH = {"type": "string", "description": "The path, relative to the working folder."}
_SCHEMAS: dict[str, tuple[str, dict[str, Any]]] = {
    "Read": (
        "Read a file of the working folder, or list the names in a folder of it.",
        {
            "path": _PATH,
            "offset": {"type": "integer", "minimum": 0, "description": "The first line to read, counted from 0."},
            "limit": {"type": "integer", "minimum": 1, "description": f"How many lines; {DEFAULT_LINES:,} if absent."},
        },
    ),
    "Write": (
        "Create a file in the working folder, or replace the whole content of one.",
        {"path": _PATH, "content": {"type": "string", "description": "The whole new content."}},
    ),
    "Bash": (
        "Run a shell command in the working folder, in a sandbox without a network.",
        {"command": {"type": "string", "description": "The command line."}},
    ),
}
_REQUIRED = {"Read": ["path"], "Write": ["path", "content"], "Bash": ["command"]}


class OwnTools:
    """The agent's own tools over one working folder; each call passes the gate first."""

    def __init__(
        self,
        work: WorkFolder,
        scripts: Scripts,
        gate: ToolGate,
        on_child_call: Callable[[str, str, dict[str, Any]], None],
    ) -> None:
        self._work = work
        self._scripts = scripts
        self._gate = gate
        self._on_child_call = on_child_call

    def make_toolset(self, ceiling: tuple[str, ...]) -> FunctionToolset[Any]:
        """Return the tools that ``ceiling`` names, whole or in part."""
        names = {parse_tool_pattern(written).tool for written in ceiling}
        calls = {"Read": self.read, "Write": self.write, "Bash": self.run_command}
        return FunctionToolset([_make_tool(name, calls[name]) for name in OWN_TOOLS if name in names], id="own-tools")

    async def read(self, **arguments: Any) -> Any:  # noqa: ANN401 - what a model sends, and gets
        """Return the text of a file, a picture, or the names in a folder."""
        with self._report_failures("Read", arguments):
            path = self._work.resolve(required_text(arguments, "path"))
            offset = optional_count(arguments, "offset", 0)
            limit = optional_count(arguments, "limit", DEFAULT_LINES, 1)
            await self._admit(ToolRequest("Read", path or "."))
            content = await run_in_thread(lambda: self._work.read(path, offset, limit))
        if not content.media:
            return content.text
        return [content.text, BinaryContent(content.media, media_type=content.media_type)]

    async def write(self, **arguments: Any) -> str:  # noqa: ANN401 - what a model sends
        """Create or replace a file; return a sentence about it."""
        with self._report_failures("Write", arguments):
            path = self._work.resolve(required_text(arguments, "path"))
            content = arguments.get("content")
            if not isinstance(content, str):
                raise BadArgumentsError("content must be a string")
            preview = await run_in_thread(lambda: self._work.diff(path, content))
            await self._admit(ToolRequest("Write", path, preview))
            return await run_in_thread(lambda: self._work.write(path, content))

    async def run_command(self, **arguments: Any) -> str:  # noqa: ANN401 - what a model sends
        """Run a command in the sandbox; return what it printed and how it ended."""
        with self._report_failures("Bash", arguments):
            command = required_text(arguments, "command")
            await self._admit(ToolRequest("Bash", command))
            ran = await run_in_thread(lambda: self._scripts.run_command(command))
        if not ran.ok:
            raise ToolFailed(render_script_result(ran))
        return render_script_result(ran)

    async def _admit(self, request: ToolRequest) -> None:
        child = find_child()
        name = child.prepared.skill_name if child is not None else ""
        await self._gate.admit(ToolRequest(request.tool, request.subject, request.preview, name), child)

    @contextmanager
    def _report_failures(self, tool: str, arguments: dict[str, Any]) -> Iterator[None]:
        """Turn what goes wrong into a failed result, from which the model can go on."""
        child = find_child()
        if child is not None:  # the calls of the agent itself are told by the framework
            self._on_child_call(child.prepared.skill_name, tool, arguments)
        try:
            yield
        except SkillError as error:
            raise ToolFailed(str(error)) from None
        except BadArgumentsError as error:
            raise ToolFailed(f"wrong arguments: {error}") from None


def _make_tool(name: str, call: Callable[..., Any]) -> Tool[Any]:
    description, properties = _SCHEMAS[name]
    schema = {"type": "object", "properties": properties, "required": _REQUIRED[name], "additionalProperties": False}
    return Tool[Any].from_schema(call, name, description, schema)
