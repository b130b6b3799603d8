"""The dialect ``use_skill``: one tool that returns instructions in an element, with the folder and the files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from prowess.conversation.rendering import render_file_elements
from prowess.skills.render import render_xml_entry
from prowess.text.hidden_characters import to_one_line
from prowess.text.markup import CONTENT_TAG, wrap_in_element
from prowess.tools.definitions import BadArgumentsError, ToolDefinition, ToolResult, describe_error, object_schema
from prowess.tools.dialect import Dialect, Tool, can_load_skills, name_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from prowess.skills.render import ListingEntry
    from prowess.skills.skill import Skill
    from prowess.tools.prompt import View


def _render_prompt(view: View) -> str:
    """Return XML with locations."""
    if not view.skills:
        return ""
    intro = (
        "The following skills are available. To activate one, call the `from_scratch__use_skill` tool with the skill "
        "name."
    )
    return f"{intro}\n\n{view.fit_listing(_render_listing, has_location=True)}"


def _render_listing(entries: Sequence[ListingEntry]) -> str:
    """Return the elements of the skills at the margin, as their system has them."""
    rows = "".join(f"{render_xml_entry(entry)}\n" for entry in entries)
    return f"<available_skills>\n{rows}</available_skills>" if entries else ""


def _define_use(view: View) -> ToolDefinition:
    return ToolDefinition(
        "from_scratch__use_skill",
        "Load and activate a skill by name, returning its full instructions. <available_skills> has the names.",
        object_schema({"name": name_parameter(view)}, ("name",)),
    )


def _answer_use(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return the instructions in their element, with the folder and the files."""
    name = arguments.get("name")
    if not isinstance(name, str):
        raise BadArgumentsError("'name' argument must be a string.")
    if view.moment.find(name) is None:
        raise BadArgumentsError(f"Skill '{name}' not found.")
    # This dialect's system knows no commands in instructions: they stay text.
    activation = view.session.activate(name, run=False)
    return ToolResult(_render_content(view.mask_skill(activation.skill), activation.instructions), data={"skill": name})


def _render_content(skill: Skill, instructions: str) -> str:
    folder = f"Skill directory: {to_one_line(skill.folder)}\n" if skill.folder else ""
    resources = skill.resources()
    # Only the three folders of the specification are listed; other files are at the end of ``paths``.
    paths = resources.paths[: len(resources.paths) - len(resources.other)]
    rule = "Relative paths in this skill are relative to the skill directory."
    listed = f"{rule}\n<skill_resources>\n{render_file_elements(paths)}</skill_resources>" if paths else ""
    return wrap_in_element(CONTENT_TAG, skill.name, f"{instructions}\n\n{folder}{listed}")


def _render_error(_tool: str, error: Exception) -> ToolResult:
    """Return a JSON object with the kind of error and its message."""
    data = {"error_type": "ValueError", "message": describe_error(error)}
    return ToolResult(json.dumps(data, ensure_ascii=False), is_error=True, data=data)


DIALECT = Dialect(
    "use_skill",
    (Tool("from_scratch__use_skill", _define_use, _answer_use, can_load_skills),),
    _render_prompt,
    _render_error,
    # Preloaded instructions are in the element that the tool uses.
    lambda activation: _render_content(activation.skill, activation.written),
)
