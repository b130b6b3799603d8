"""The agent's own tools: ``Read`` and ``Write`` for files of the working folder, ``Bash`` for commands in a sandbox."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

from prowess.adapters.pydantic_ai import find_child, get_arguments, make_tool
from prowess.agent.approval import ToolRequest
from prowess.conversation.tool_rules import parse_tool_pattern
from prowess.errors import ResourceNotFoundError, ResourceTooLargeError, SkillError
from prowess.files.owned_json import OwnedJson
from prowess.files.projects import user_state_file
from prowess.limits import DEFAULT_LIMITS
from prowess.thread_work import run_in_thread
from prowess.tools.acting import render_script_result
from prowess.tools.definitions import BadArgumentsError, optional_count, parse_arguments, required_text
from prowess.tools.file_ranges import DEFAULT_LINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic_ai.tools import RunContext
    from pydantic_ai.toolsets import ToolsetTool

    from prowess.agent.approval import ToolGate
    from prowess.agent.work_folder import WorkFolder
    from prowess.conversation.acting.scripts import Scripts

    Runs = dict[str, str]
    "The hash of what a run was bounded to, by its key; the run that was remembered last comes last."


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


class OwnToolset(AbstractToolset[Any]):
    """The agent's own tools over one working folder, as far as the ceiling names them; each call passes the gate."""

    def __init__(
        self,
        ceiling: tuple[str, ...],
        work: WorkFolder,
        scripts: Scripts,
        gate: ToolGate,
        on_child_call: Callable[[str, str, Any], None],
    ) -> None:
        self._names = {parse_tool_pattern(written).tool for written in ceiling}
        self._work = work
        self._scripts = scripts
        self._gate = gate
        self._on_child_call = on_child_call

    @property
    def id(self) -> str:
        """The name of this toolset."""
        return "prowess-own-tools"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools that the ceiling names, whole or in part."""
        return {name: make_tool(self, _describe_tool(name), ctx) for name in OWN_TOOLS if name in self._names}

    async def call_tool(  # the framework's signature
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> Any:
        """Answer a model's call; raise ``ToolFailed`` with what went wrong, from which the model can go on."""
        sent, child = get_arguments(tool_args), find_child()
        if child is not None:  # the framework reports the calls of the agent itself
            self._on_child_call(child.prepared.skill_name, name, sent)
        answer = {"Read": self._read, "Write": self._write, "Bash": self._run_command}[name]
        try:
            return await answer(parse_arguments(sent))
        except (ResourceNotFoundError, ResourceTooLargeError) as error:
            raise ToolFailed(error.message) from None  # what to do is written for the files of skills
        except SkillError as error:
            raise ToolFailed(str(error)) from None
        except BadArgumentsError as error:
            raise ToolFailed(f"wrong arguments: {error}") from None

    async def _read(self, arguments: dict[str, Any]) -> Any:
        path = self._work.resolve(required_text(arguments, "path"))
        offset = optional_count(arguments, "offset", 0)
        limit = optional_count(arguments, "limit", DEFAULT_LINES, 1)
        await self._admit(ToolRequest("Read", path or "."))
        content = await run_in_thread(lambda: self._work.read(path, offset, limit))
        if not content.media:
            return content.text
        return [content.text, BinaryContent(content.media, media_type=content.media_type)]

    async def _write(self, arguments: dict[str, Any]) -> str:
        path = self._work.resolve(required_text(arguments, "path"))
        content = arguments.get("content")
        if not isinstance(content, str):
            raise BadArgumentsError("content must be a string")
        planned = await run_in_thread(lambda: self._work.plan_write(path, content))
        is_protected = self._scripts.protects(path)
        await self._admit(ToolRequest("Write", path, planned.preview, is_protected=is_protected))
        return await run_in_thread(lambda: self._work.write(path, content, planned))

    async def _run_command(self, arguments: dict[str, Any]) -> str:
        command = required_text(arguments, "command")
        await self._admit(ToolRequest("Bash", command))
        ran = await run_in_thread(lambda: self._scripts.run_command(command))
        if not ran.ok:
            raise ToolFailed(render_script_result(ran))
        return render_script_result(ran)

    async def _admit(self, request: ToolRequest) -> None:
        child = find_child()
        name = child.prepared.skill_name if child is not None else ""
        await self._gate.admit(replace(request, skill=name), child)


def _describe_tool(name: str) -> ToolDefinition:
    description, properties = _SCHEMAS[name]
    schema = {"type": "object", "properties": properties, "required": _REQUIRED[name], "additionalProperties": False}
    return ToolDefinition(name=name, description=description, parameters_json_schema=schema, sequential=True)


class TypedTools:
    """The runs of this user that were begun with ``--tools``, each with its folder, its tools and its skills' places.

    The newest ``Limits.max_remembered_runs`` are kept. Every method raises ``NotTrustedError`` (``run-store``) for a
    file that somebody else could have written, or that cannot be used.
    """

    def __init__(self) -> None:
        self._file = OwnedJson(
            user_state_file("typed-tools.json"), "tools that were typed for earlier runs", "run-store"
        )

    def remember(self, key: str, folder: str, tools: Iterable[str], places: Iterable[str]) -> None:
        """Remember that the user typed the tools of a run."""
        bounds = _hash_bounds(folder, tools, places)

        def add_run() -> dict[str, Any]:
            runs = {other: kept for other, kept in self._read().items() if other != key}
            newest = [*runs.items(), (key, bounds)][-DEFAULT_LIMITS.max_remembered_runs :]
            return {"version": 1, "runs": dict(newest)}

        self._file.update(add_run)

    def knows(self, key: str, folder: str, tools: Iterable[str], places: Iterable[str]) -> bool:
        """Return whether the user typed exactly these tools for the run, with this folder and these places."""
        return self._read().get(key) == _hash_bounds(folder, tools, places)

    def _read(self) -> Runs:
        return self._file.read(_parse_runs) or {}


def _parse_runs(content: Any) -> Runs:
    # What a later Prowess wrote is not understood, and approves nothing.
    return {str(key): str(value) for key, value in content["runs"].items()} if content["version"] == 1 else {}


def _hash_bounds(folder: str, tools: Iterable[str], places: Iterable[str]) -> str:
    return sha256(json.dumps([folder, sorted(tools), list(places)]).encode()).hexdigest()
