"""The dialect ``skill_load``: instructions with a hint at their files, for an agent with a list of allowed skills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.errors import ResourceError, ResourceTooLargeError
from prowess.spec.hidden_characters import to_one_line
from prowess.spec.markup import neutralize_tags
from prowess.tools.arguments import optional_text, required_text
from prowess.tools.availability import can_load_skills
from prowess.tools.definitions import ToolDefinition, ToolResult, object_schema, string_schema
from prowess.tools.dialect import Dialect, Tool
from prowess.tools.refusals import error_result, render_plain_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.model import Resources
    from prowess.spec.render import ListingEntry
    from prowess.tools.view import View

_MAX_DESCRIPTION_LENGTH = 200
_MAX_FILE_BYTES = 65_536


def _render_prompt(view: View) -> str:
    """Return a Markdown section in the order of the allowed list, with descriptions cut at 200 characters."""
    known = {skill.name: skill for skill in view.skills}
    order = tuple(known) if view.options.allowed is None or view.has_lasting_order else view.options.allowed
    skills = tuple(known[name] for name in order if name in known)
    if not skills:
        return ""
    needs = {skill.name: skill.compatibility for skill in skills}

    def render(entries: Sequence[ListingEntry]) -> str:
        return neutralize_tags("\n".join(_render_entry(entry, needs.get(entry[0])) for entry in entries))

    call = 'Call `skill_load(name="<name>")` to load full instructions for one of these:'
    return f"\n## Available skills\n\n{call}\n\n{view.fit_listing(render, skills)}"


def _render_entry(entry: ListingEntry, needs: str | None) -> str:
    name, description, _ = entry
    row = f"- {name}: {description[:_MAX_DESCRIPTION_LENGTH].rstrip()}" if description else f"- {name}"
    return f"{row}\n  (compatibility: {to_one_line(needs)})" if needs else row


def _define_load(_view: View) -> ToolDefinition:
    return ToolDefinition(
        "skill_load",
        "Loads the instructions of one of the skills that are available to you.",
        object_schema({"name": string_schema("Name of the skill")}, ("name",)),
    )


def _answer_load(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return the body, and a hint at its files."""
    name = required_text(arguments, "name")
    refusal = _find_refusal(view, name)
    if refusal is not None:
        return refusal
    # This dialect's system knows no commands in instructions: they stay text.
    activation = view.session.activate(name, run=False)
    skill = activation.skill
    data: dict[str, Any] = {"skill": name, "path": skill.location}
    resources = skill.resources()
    hint = _render_resource_hint(resources) if view.options.hint_resources else ""
    if hint:
        groups = {"scripts": resources.scripts, "references": resources.references, "assets": resources.assets}
        data["resources"] = groups
    return ToolResult(activation.instructions + hint, data=data)


def _find_refusal(view: View, name: str) -> ToolResult | None:
    if not view.may_use(name):
        allowed = ", ".join(view.options.allowed or ()) or "(none)"
        return error_result(
            f"skill '{name}' is not available to this agent. allowed: [{allowed}]", skill=name, reason="not_allowed"
        )
    if not view.session.is_available(name):
        return error_result(f"skill '{name}' is allowed but not registered", skill=name, reason="missing")
    return None


def _render_resource_hint(resources: Resources) -> str:
    groups = ((resources.scripts, "script"), (resources.references, "reference"), (resources.assets, "asset"))
    counts = ", ".join(f"{len(names)} {what}(s)" for names, what in groups if names)
    return f"\n\n---\nThis skill ships {counts}. Call skill_resource to list or read them." if counts else ""


def _define_resource(_view: View) -> ToolDefinition:
    return ToolDefinition(
        "skill_resource",
        "Lists the supporting files of a skill, or reads one of them.",
        object_schema(
            {
                "name": string_schema("Name of the skill"),
                "resource": string_schema("Path of the file; leave it out to list them"),
            },
            ("name",),
        ),
    )


def _answer_resource(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return the list of files, or the content of the named file."""
    name = required_text(arguments, "name")
    path = optional_text(arguments, "resource")
    refusal = _find_refusal(view, name)
    if refusal is not None:
        return refusal
    skill = view.session.skill(name)
    if not path:
        return ToolResult(_render_file_list(skill.resources()), data={"skill": name})
    limit = _MAX_FILE_BYTES if view.options.max_bytes is None else view.options.max_bytes
    try:
        content = view.session.read_resource(name, path, limit)
    except ResourceTooLargeError:
        message = f"resource '{path}' exceeds {limit} bytes — refusing to inline it"
        return error_result(message, skill=name, resource=path, reason="too_large")
    except ResourceError as error:
        return error_result(f"cannot read '{path}': {error.message}", skill=name, resource=path, reason="read_failed")
    return ToolResult(content, data={"skill": name, "resource": path})


def _render_file_list(resources: Resources) -> str:
    lines: list[str] = []
    for group in ("scripts", "references", "assets"):
        names: tuple[str, ...] = getattr(resources, group)
        if names:
            lines += [f"## {group}", *(f"- {group}/{to_one_line(name)}" for name in names), ""]
    if resources.other:
        lines += ["## other", *(f"- {to_one_line(name)}" for name in resources.other), ""]
    return neutralize_tags("\n".join(lines).rstrip("\n")) if lines else "(no supporting files)"


DIALECT = Dialect(
    "skill_load",
    (
        Tool("skill_load", _define_load, _answer_load, can_load_skills),
        Tool("skill_resource", _define_resource, _answer_resource, can_load_skills),
    ),
    _render_prompt,
    render_plain_error,
)
