"""The dialect ``read_skill``: the whole SKILL.md, the files of a skill, and skills that run as sub-agents."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from prowess.errors import PathTraversalError, SkillError, SkillValidationError
from prowess.text.hidden_characters import to_one_line
from prowess.text.markup import escape_attribute, escape_xml
from prowess.tools.acting import run_skill
from prowess.tools.definitions import (
    ToolDefinition,
    ToolResult,
    error_result,
    optional_text,
    render_plain_error,
    text_schema,
)
from prowess.tools.dialect import Dialect, Tool, can_load_skills, fork_parameters, has_files, has_forks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from prowess.skills.render import ListingEntry
    from prowess.skills.skill import Skill
    from prowess.tools.prompt import View


def _render_prompt(view: View) -> str:
    """Return XML without locations, with the files of each skill and the tool that reads them."""
    if not view.skills:
        return ""
    files = {skill.name: _list_paths(skill) for skill in view.skills}
    intro = ["The skills below hold instructions for particular tasks. When one fits, read it with read_skill first."]
    if view.forks:
        intro.append("A skill whose mode is forked runs as a sub-agent of its own: use run_skill, not read_skill.")
    if any(files.values()):
        intro.append("Files that belong to a skill are read with read_skill_file.")

    def render(entries: Sequence[ListingEntry]) -> str:
        rows = "".join(_render_entry(entry, files.get(entry[0], ()), entry[0] in view.forks) for entry in entries)
        return f"<available_skills>\n{rows}</available_skills>"

    return "\n\n".join([*intro, view.fit_listing(render)])


def _render_entry(entry: ListingEntry, files: tuple[str, ...], fork: bool) -> str:  # noqa: FBT001 - one caller
    name, description, _ = map(escape_xml, entry)
    rows = [f"    <name>{name}</name>", f"    <description>{description}</description>"]
    rows += ["    <mode>forked</mode>"] if fork else []
    rows += [f"    <files>{escape_attribute(to_one_line(', '.join(files)))}</files>"] if files else []
    return "  <skill>\n" + "\n".join(rows) + "\n  </skill>\n"


def _list_paths(skill: Skill) -> tuple[str, ...]:
    try:
        return skill.own_files.resource_paths()
    except SkillError:
        return ()


_READ = ToolDefinition(
    "read_skill",
    "Read the content of a skill by name. Call it when a request fits the description of a skill.",
    text_schema({"name": "The name of the skill to read"}, closed=True),
    title="Read Skill",
)


def _answer_read(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return the whole file, frontmatter included."""
    name = optional_text(arguments, "name")
    if view.moment.find(name) is None:
        return error_result(f'skill "{name}" not found', reason="unknown-skill")
    return ToolResult(view.session.activate_text(name, whole=True), data={"skill": name})


_FILE = ToolDefinition(
    "read_skill_file",
    "Read a supporting file from a skill (e.g. references, scripts, assets). "
    "Call it when the instructions name a file.",
    text_schema(
        {
            "skill_name": "The name of the skill that contains the file",
            "path": "The relative path to the file within the skill (e.g. references/FORMS.md)",
        },
        closed=True,
    ),
    title="Read Skill File",
)


def _answer_file(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return the text of a file."""
    name, path = optional_text(arguments, "skill_name"), optional_text(arguments, "path")
    skill = view.moment.find(name)
    if skill is None:
        return error_result(f'skill "{name}" not found', reason="unknown-skill")
    if skill.is_inline:
        return error_result(f'skill "{name}" is defined inline and has no supporting files', reason="no-files")
    try:
        content = view.session.read_resource(name, path, view.options.max_bytes)
    except PathTraversalError:
        return error_result(f'invalid file path "{to_one_line(path)}"', reason="path-escape")
    return ToolResult(content, data={"skill": name, "path": path})


_RUN = ToolDefinition(
    "run_skill",
    "Run a skill in a forked context with its own conversation history. A skill whose mode is forked runs only so.",
    fork_parameters(),
    parallel=False,
    read_only=False,
    title="Run Skill",
)


def _render_error(tool: str, error: Exception) -> ToolResult:
    """Return the message alone; for a skill that could not be read, say so."""
    if isinstance(error, SkillValidationError):
        return error_result(f"reading file: {error.message}", reason=error.code)
    return render_plain_error(tool, error)


DIALECT = Dialect(
    "read_skill",
    (
        Tool("read_skill", _READ, _answer_read, can_load_skills),
        Tool("read_skill_file", _FILE, _answer_file, has_files),
        Tool("run_skill", _RUN, run_skill, has_forks, "fork"),
    ),
    _render_prompt,
    _render_error,
    attrgetter("instructions"),  # with the output of their commands
)
