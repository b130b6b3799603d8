"""The dialect ``prowess``, the default: load, unload, read in ranges, run and search, each offered when of use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.conversation.activation import read_activation
from prowess.conversation.rendering import render_load_result, render_preload_element
from prowess.errors import SkillError, log_host_error
from prowess.limits import DEFAULT_LIMITS
from prowess.text.hidden_characters import to_one_line
from prowess.text.markup import escape_xml, neutralize_tags
from prowess.tools.acting import run_script, run_skill
from prowess.tools.definitions import (
    BadArgumentsError,
    ToolDefinition,
    ToolResult,
    describe_error,
    error_result,
    object_schema,
    optional_count,
    optional_text,
    parse_arguments,
    required_text,
    sanitize_error,
    string_schema,
    text_schema,
)
from prowess.tools.dialect import (
    Dialect,
    Tool,
    deactivate_skill,
    fork_parameters,
    has_files,
    has_forks,
    has_scripts,
    has_skills,
    is_searchable,
    make_enum,
    may_run_scripts,
    name_parameter,
)
from prowess.tools.file_ranges import DEFAULT_LINES, read_file_range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any

    from prowess.skills.render import ListingEntry
    from prowess.skills.skill import Skill
    from prowess.tools.prompt import View

    Arguments = Mapping[str, Any]

_DEFAULT_HITS = 10
_MAX_HITS = 50
_ARGS_DESCRIPTION = "Its arguments, one item each; a file of the skill is ${SKILL_DIR}/assets/table.csv"
_HINTS = {
    "not-found": "name a file as the skill's instructions do, relative to its directory",
    "max-active": "unload an active skill first, with unload_skill",
}
"""Remedies for a model, in place of those that name something which no tool of this dialect can do."""


# -- the prompt --------------------------------------------------------------------------------------------------------


def _render_prompt(view: View) -> str:
    """Return the rule for using skills, and the listing without locations."""
    blocks: list[str] = []
    if view.skills:
        blocks.append(
            "Skills are instructions for particular tasks. When a task fits a description below, call load_skill with "
            "that name before you begin, and follow what it says.",
        )
        if view.forks:
            blocks.append("A skill whose mode is forked runs as a sub-agent of its own: call run_skill instead.")
        blocks.append(view.fit_listing(lambda entries: _render_listing(entries, view.forks)))
    is_chosen = view.choice.how == "chosen"
    if unlisted := (len(view.findable) - len(view.report.shown) if is_chosen else len(view.report.omitted)):
        blocks.append(f"{unlisted} more are not listed: find them with search_skills.")
    return "\n\n".join(blocks)


def _render_listing(entries: Sequence[ListingEntry], forks: AbstractSet[str]) -> str:
    rows = ["<available_skills>\n"]
    for name, description, _ in entries:
        mode = "<mode>forked</mode>" if name in forks else ""
        # Fast path of the bench row "prompt(), made for the first time": one look at both strings instead of six.
        both = name + description
        if not both.isascii() or "<" in both or ">" in both or "&" in both:
            name, description = escape_xml(name), escape_xml(description)  # noqa: PLW2901 - the same strings, escaped
        described = f"<description>{description}</description>" if description else ""
        rows.append(f"<skill><name>{name}</name>{described}{mode}</skill>\n")
    rows.append("</available_skills>")
    return "".join(rows)


# -- the tools ---------------------------------------------------------------------------------------------------------


def _define_load(view: View) -> ToolDefinition:
    parameters = {
        "name": name_parameter(view, "The skill's name, as listed", search=True),
        "arguments": string_schema("What the user asks for, in their words, when the skill takes arguments"),
    }
    return ToolDefinition(
        "load_skill",
        "Load a skill's instructions before doing a task that its description fits.",
        object_schema(parameters, ("name",), closed=True),
    )


def _answer_load(view: View, arguments: Arguments) -> ToolResult:
    """Return the instructions in their element, with the folder, the rule for paths and the files."""
    # Commands in the instructions do not get these arguments: a person granted them for what people say, not models.
    name, given = required_text(arguments, "name"), optional_text(arguments, "arguments")
    view.require_skill(name)
    activation = view.session.activate(name)
    remedy = "; call run_skill to run it as one" if view.options.fork is not None else ""
    shown = view.mask_activation(activation)
    files = view.options.hint_resources
    content, _ = render_load_result(shown, given or None, project=view.project_folder, remedy=remedy, files=files)
    data = {"skill": name, "location": activation.skill.location, "added_tools": list(activation.added_tools)}
    return ToolResult(content, data=data)


_UNLOAD = ToolDefinition(
    "unload_skill",
    "Put a skill aside whose instructions no longer apply.",
    text_schema({"name": "The skill's name"}, closed=True),
    parallel=False,
    read_only=False,
)


def _answer_unload(view: View, arguments: Arguments) -> ToolResult:
    """Unload a skill, and return that it is put aside."""
    name = required_text(arguments, "name")
    data = {"skill": name, "removed_tools": list(deactivate_skill(view, name))}
    return ToolResult(neutralize_tags(f"{to_one_line(name)} is put aside."), data=data)


def _define_file(view: View) -> ToolDefinition:
    parameters = {
        "name": name_parameter(view, "The skill's name", search=True),
        "path": string_schema("The file, relative to the skill's directory, such as references/guide.md"),
        "offset": {"type": "integer", "minimum": 0, "description": "First line to read, counted from 0"},
        "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read"},
    }
    return ToolDefinition(
        "read_skill_file",
        "Read a file of a skill when its instructions name it; large files in parts.",
        object_schema(parameters, ("name", "path"), closed=True),
    )


def _answer_file(view: View, arguments: Arguments) -> ToolResult:
    """Return the text of a file, whole or in lines; a binary file is returned as data for the host."""
    name, path, offset, limit = _parse_file_request(arguments)
    skill, default = view.moment.pin_state(view.require_skill(name)), view.moment.limits.max_resource_bytes
    result = read_file_range(skill, name, path, offset, limit, max_bytes=view.options.max_bytes, default_bytes=default)
    view.session.note_read(result.data["skill"], path, result.data.get("size", len(result.content)))
    return result


def _parse_file_request(arguments: Arguments) -> tuple[str, str, int, int]:
    """Return the name of a skill, the path of its file, the first line to read, and how many."""
    name, path = required_text(arguments, "name"), required_text(arguments, "path")
    offset = optional_count(arguments, "offset", 0)
    return name, path, offset, optional_count(arguments, "limit", DEFAULT_LINES, least=1)


def answer_about(skill: Skill, tool: str, arguments: Arguments, project: str) -> ToolResult:
    """Return the answer of ``load_skill`` or ``read_skill_file`` about one skill, outside of any conversation.

    No command runs, and nothing is remembered. ``project`` is the working folder.
    """
    try:
        given = parse_arguments(arguments)
        if tool == "load_skill":
            required_text(given, "name")
            request = optional_text(given, "arguments")
            return ToolResult(render_load_result(read_activation(skill), request or None, project=project)[0])
        file = _parse_file_request(given)
        return read_file_range(skill, *file, max_bytes=None, default_bytes=DEFAULT_LIMITS.max_resource_bytes)
    except (SkillError, BadArgumentsError) as error:
        return sanitize_error(_render_error(tool, error))
    except Exception as error:  # noqa: BLE001 - the edge to a model: no details of a fault reach it
        log_host_error(f"call of {tool}", error)
        return sanitize_error(_render_error(tool, SkillError("it failed inside the host", code="host-failed")))


def _define_run(view: View) -> ToolDefinition:
    listed = make_enum(view, sorted(view.forks), search=True)
    return ToolDefinition(
        "run_skill",
        "Run a skill whose mode is forked as a sub-agent of its own, and get its answer.",
        fork_parameters(listed),
        parallel=False,
        read_only=False,
    )


def _define_script(view: View) -> ToolDefinition:
    # With so many skills that they are searched for, looking into each folder would be slow, and no enum is shown.
    names = [] if is_searchable(view) else [skill.name for skill in view.skills if has_scripts(skill)]
    parameters = {
        "name": string_schema("The skill's name", **make_enum(view, names)),
        "script": string_schema("The script, relative to the skill's directory, such as scripts/convert.py"),
        "args": {"type": "array", "items": string_schema(), "description": _ARGS_DESCRIPTION},
        "stdin": string_schema("What it reads from standard input"),
    }
    return ToolDefinition(
        "run_skill_script",
        "Run a script of a skill when its instructions say so, and get what it prints.",
        object_schema(parameters, ("name", "script"), closed=True),
        parallel=False,
        read_only=False,
    )


_SEARCH = ToolDefinition(
    "search_skills",
    "Find skills for a task among all of them, also those that are not listed.",
    object_schema(
        {
            "query": string_schema("What the task is about, in a few words"),
            "limit": {"type": "integer", "minimum": 1, "maximum": _MAX_HITS, "description": "At most so many (10)"},
        },
        ("query",),
        closed=True,
    ),
)


def _answer_search(view: View, arguments: Arguments) -> ToolResult:
    """Return the names and descriptions of the skills that fit the query."""
    query = required_text(arguments, "query")
    limit = min(optional_count(arguments, "limit", _DEFAULT_HITS, least=1), _MAX_HITS)
    hits = view.findable.rank(query, limit)
    if not hits:
        return ToolResult("No skill fits these words. Try others, or go on without a skill.", data={"names": []})
    rows = "\n".join(f"- {to_one_line(hit.name)}: {to_one_line(hit.description)}" for hit in hits)
    return ToolResult(
        neutralize_tags(f"Skills that fit, best first:\n{rows}"), data={"names": [hit.name for hit in hits]}
    )


def _render_error(tool: str, error: Exception) -> ToolResult:
    """Return what went wrong and what to do next."""
    code = getattr(error, "code", "bad-arguments")
    if isinstance(error, BadArgumentsError):
        return error_result(
            f"{tool}: {error}. Call it again with the parameters of its schema.", reason="bad-arguments"
        )
    hint = _HINTS.get(code, getattr(error, "hint", ""))
    said = describe_error(error)
    return error_result(f"{said}. {hint[:1].upper()}{hint[1:]}." if hint else said, reason=code)


DIALECT = Dialect(
    "prowess",
    (
        Tool("load_skill", _define_load, _answer_load, has_skills),
        Tool("unload_skill", _UNLOAD, _answer_unload, has_skills),
        Tool("read_skill_file", _define_file, _answer_file, has_files),
        Tool("run_skill", _define_run, run_skill, has_forks, "fork"),
        Tool("run_skill_script", _define_script, run_script, may_run_scripts, "script"),
        Tool("search_skills", _SEARCH, _answer_search, is_searchable),
    ),
    _render_prompt,
    _render_error,
    render_preload_element,
    loads_hidden=False,
    selects_by_default=True,
)
