"""The dialect ``skill__activate``: activate, deactivate and read, each answered with JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from prowess.errors import SkillError, UnknownSkillError
from prowess.text.hidden_characters import to_one_line
from prowess.tools.definitions import (
    BadArgumentsError,
    ToolDefinition,
    ToolResult,
    error_result,
    object_schema,
    optional_text,
    render_plain_error,
    string_schema,
    text_schema,
)
from prowess.tools.dialect import Dialect, Tool, can_load_skills, deactivate_skill, require_allowed_skill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.tools.prompt import View

SKILL_NAMESPACE = "skill"
"""The names of the tools begin with this, before two underscores."""
SKILL_ACTIVATE_TOOL = f"{SKILL_NAMESPACE}__activate"
SKILL_DEACTIVATE_TOOL = f"{SKILL_NAMESPACE}__deactivate"
SKILL_READ_RESOURCE_TOOL = f"{SKILL_NAMESPACE}__read_resource"
SKILL_EXECUTOR_NAME = "skill"
"""The name of the executor of these tools, for hosts that look up executors by name."""
_NAMES = {"type": "array", "items": string_schema()}
_WORDS = {
    "unknown-skill": "skill {name} not found",
    "filtered": "skill {name} is not available in the current state (filter: {filter})",
    "max-active": "cannot activate skill {name}: max active limit ({limit}) reached",
    "not-active": "skill {name} is not active",
    "no-files": "skill {name} is inline and has no directory",
    "path-escape": "resource path escapes skill directory: {path}",
}
"""What this dialect's system says, by the code of the error."""


def _render_prompt(view: View) -> str:
    """Return the index of skills, unless it is in the description of the tool."""
    listing = view.render_index() if view.skills else ""
    return "" if view.options.index_in_description else listing


def _define_activate(view: View) -> ToolDefinition:
    description = "Activate a skill to load its instructions and tools."
    if view.options.index_in_description:
        description += f"\n\n{view.render_index()}"
    return ToolDefinition(
        SKILL_ACTIVATE_TOOL,
        description,
        text_schema({"name": "Name of the skill to activate."}),
        parallel=False,
        read_only=False,
        output=object_schema({"instructions": string_schema(), "added_tools": _NAMES}),
    )


def _answer_activate(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return the instructions, and the tools that the skill adds."""
    name = optional_text(arguments, "name")
    try:
        require_allowed_skill(view, name)
        # This dialect's system knows no commands in instructions: they stay text.
        activation = view.session.activate(name, run=False)
    except SkillError as error:
        return _refuse(error, name, first=f"activating skill {_quote(name)}: ")
    return _json_result({"instructions": activation.instructions, "added_tools": list(activation.added_tools)})


_DEACTIVATE = ToolDefinition(
    SKILL_DEACTIVATE_TOOL,
    "Deactivate a skill to unload its instructions and tools.",
    text_schema({"name": "Name of the skill to deactivate."}),
    parallel=False,
    read_only=False,
    output=object_schema({"removed_tools": _NAMES}),
)


def _answer_deactivate(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return the tools that are removed."""
    name = optional_text(arguments, "name")
    try:
        return _json_result({"removed_tools": list(deactivate_skill(view, name))})
    except SkillError as error:
        return _refuse(error, name)


_READ = ToolDefinition(
    SKILL_READ_RESOURCE_TOOL,
    "Read a resource file from within a skill's directory.",
    text_schema(
        {
            "skill_name": "Name of the skill owning the resource.",
            "path": "Relative path to the resource within the skill directory.",
        }
    ),
    output=object_schema({"content": string_schema()}),
)


def _answer_read(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return the content of a file."""
    name, path = optional_text(arguments, "skill_name"), optional_text(arguments, "path")
    try:
        require_allowed_skill(view, name)
        return _json_result({"content": view.session.read_resource(name, path, view.options.max_bytes)})
    except SkillError as error:
        return _refuse(error, name, path)


def _json_result(data: dict[str, Any]) -> ToolResult:
    return ToolResult(json.dumps(data, ensure_ascii=False), data=data)


def _quote(name: str) -> str:
    return f'"{to_one_line(name)}"'


def _refuse(error: SkillError, name: str, path: str = "", *, first: str = "") -> ToolResult:
    """Return an error in the words that programs of this dialect's system compare; ``first`` begins an unknown name.

    Raises ``error`` when that system has no words for it.
    """
    words = _WORDS.get(error.code)
    if words is None:
        raise error
    limit, pattern = getattr(error, "limit", 0), _quote(getattr(error, "filter", ""))
    said = words.format(name=_quote(name), path=to_one_line(path), limit=limit, filter=pattern)
    return error_result(first + said if isinstance(error, UnknownSkillError) else said, reason=error.code)


def _render_error(tool: str, error: Exception) -> ToolResult:
    """Return the message alone; for arguments that cannot be read, after the name of the call."""
    if isinstance(error, BadArgumentsError):
        return error_result(
            f"parsing {tool.removeprefix(f'{SKILL_NAMESPACE}__')} args: {error}", reason="bad-arguments"
        )
    return render_plain_error(tool, error)


DIALECT = Dialect(
    "skill__activate",
    (
        Tool(SKILL_ACTIVATE_TOOL, _define_activate, _answer_activate, can_load_skills),
        Tool(SKILL_DEACTIVATE_TOOL, _DEACTIVATE, _answer_deactivate, can_load_skills),
        Tool(SKILL_READ_RESOURCE_TOOL, _READ, _answer_read, can_load_skills),
    ),
    _render_prompt,
    _render_error,
    has_index_tool=True,
)
