"""The dialect ``load_skill``: one tool that returns the body of a SKILL.md, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.skills.render import render_lines
from prowess.tools.definitions import (
    BadArgumentsError,
    ToolDefinition,
    ToolResult,
    describe_error,
    error_result,
    optional_text,
    text_schema,
)
from prowess.tools.dialect import Dialect, Tool, can_load_skills

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from prowess.tools.prompt import View


def _render_prompt(view: View) -> str:
    """Return a Markdown list, and the sentence that names the tool."""
    if not view.skills:
        return ""
    listing = view.fit_listing(render_lines)
    closing = "Call the load_skill tool with a skill name to load its full instructions."
    return f"# Available Skills\n\n{listing}\n\n{closing}"


_LOAD = ToolDefinition(
    "load_skill",
    "Load the full instructions for a named skill. Returns the complete SKILL.md body as markdown.",
    text_schema({"skill_name": 'Name of the skill to load (matches the frontmatter "name" field).'}),
)


def _answer_load(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return the body, byte for byte."""
    name = optional_text(arguments, "skill_name")
    if not name:
        return error_result("load_skill: skill_name is required", reason="bad-arguments")
    if view.moment.find(name) is None:
        if not view.skills:
            return error_result("load_skill: no skills are configured", reason="unknown-skill")
        available = ", ".join(skill.name for skill in view.skills)
        return error_result(f'load_skill: skill "{name}" not found; available: {available}', reason="unknown-skill")
    # This dialect's system knows no commands in instructions: they stay text.
    return ToolResult(view.session.activate_text(name, run=False), data={"skill": name})


def _render_error(_tool: str, error: Exception) -> ToolResult:
    """Return the message, after the name of the tool."""
    kind = "invalid params: " if isinstance(error, BadArgumentsError) else ""
    return error_result(f"load_skill: {kind}{describe_error(error)}", reason=getattr(error, "code", "bad-arguments"))


DIALECT = Dialect(
    "load_skill", (Tool("load_skill", _LOAD, _answer_load, can_load_skills),), _render_prompt, _render_error
)
