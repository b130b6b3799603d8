"""The dialect ``skill_load``: instructions with a hint at their files, for an agent with a list of allowed skills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.errors import PathTraversalError, ResourceError, ResourceTooLargeError
from prowess.text.hidden_characters import to_one_line
from prowess.text.markup import neutralize_tags
from prowess.tools.definitions import (
    ToolDefinition,
    ToolResult,
    error_result,
    optional_text,
    render_plain_error,
    required_text,
    text_schema,
)
from prowess.tools.dialect import Dialect, Tool, can_load_skills

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.skills.render import ListingEntry
    from prowess.skills.resources import Resources
    from prowess.tools.prompt import View

_MAX_DESCRIPTION_LENGTH = 200
_MAX_FILE_BYTES = 65_536


def _render_prompt(view: View) -> str:
    """Return a Markdown section in the order of the allowed list, with descriptions cut at 200 characters."""
    known = {skill.name: skill for skill in view.skills}
    # What a conversation was shown keeps its order.
    was_shown = view.choice.budget is not None and view.choice.names is not None
    order = tuple(known) if view.options.allowed is None or was_shown else view.options.allowed
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


_LOAD = ToolDefinition(
    "skill_load",
    "Load the full instructions for a named skill. The system prompt lists the names.",
    text_schema({"name": "Skill name (as advertised in the system prompt)."}),
)


def _answer_load(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return the body, and a hint at its files."""
    name = required_text(arguments, "name")
    refusal = _find_refusal(view, name, " — no SKILL.md with that name loads.")
    if refusal is not None:
        return refusal
    # This dialect's system knows no commands in instructions: they stay text.
    activation = view.session.activate(name, run=False)
    skill = activation.skill
    data: dict[str, Any] = {"skill": name, "path": skill.location}
    if not view.options.hint_resources:
        return ToolResult(activation.instructions, data=data)
    resources = skill.resources()
    data["resources"] = _list_by_kind(resources)
    return ToolResult(activation.instructions + _render_resource_hint(name, resources), data=data)


def _find_refusal(view: View, name: str, end: str = ".") -> ToolResult | None:
    """Return the answer for a skill that the agent cannot have; ``end`` ends what is said of a missing one."""
    if not view.moment.is_allowed(name):
        allowed = ", ".join(dict.fromkeys(view.options.allowed or ())) or "(none)"
        return error_result(
            f"skill '{name}' is not available to this agent. allowed: [{allowed}]", skill=name, reason="not_allowed"
        )
    if view.moment.find(name) is None:
        return error_result(f"skill '{name}' is allowed but not registered{end}", skill=name, reason="missing")
    return None


def _list_by_kind(resources: Resources) -> dict[str, tuple[str, ...]]:
    return {kind: getattr(resources, kind) for kind in ("scripts", "references", "assets", "other")}


def _render_resource_hint(name: str, resources: Resources) -> str:
    groups = ((resources.scripts, "script"), (resources.references, "reference"), (resources.assets, "asset"))
    counts = ", ".join(f"{len(names)} {what}(s)" for names, what in groups if names)
    call = f'skill_resource(name="{name}"'
    calls = f'Call `{call})` to list them, `{call}, resource="<relative-path>")` to read one.'
    return f"\n\n---\nThis skill ships {counts}. {calls}" if counts else ""


_RESOURCE = ToolDefinition(
    "skill_resource",
    "Read or list supporting files in a skill directory. Without `resource` it lists them.",
    text_schema(
        {"name": "Skill name (must be allowlisted)."},
        resource="Relative path under the skill directory (e.g. 'references/REFERENCE.md', 'scripts/extract.py'). "
        "Leave it out to list the files.",
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
        resources = skill.resources()
        return ToolResult(_render_file_list(resources), data={"skill": name, "resources": _list_by_kind(resources)})
    limit = _MAX_FILE_BYTES if view.options.max_bytes is None else view.options.max_bytes
    try:
        content = view.session.read_resource(name, path, limit)
    except ResourceTooLargeError:
        message = f"resource '{path}' exceeds {limit} bytes — refusing to inline."
        return error_result(message, skill=name, resource=path, reason="too_large")
    except ResourceError as error:
        rule = "be relative" if path.startswith("/") else "not escape skill root"
        is_outside = isinstance(error, PathTraversalError)
        why = f"resource path must {rule} (got '{path}')" if is_outside else error.message
        return error_result(f"cannot read '{path}': {why}", skill=name, resource=path, reason="read_failed")
    return ToolResult(content, data={"skill": name, "resource": path})


def _render_file_list(resources: Resources) -> str:
    lines: list[str] = []
    for group in ("scripts", "references", "assets"):
        names: tuple[str, ...] = getattr(resources, group)
        if names:
            lines += [f"## {group}", *(f"- {group}/{to_one_line(name)}" for name in names), ""]
    if resources.other:
        lines += ["## other", *(f"- {to_one_line(name)}" for name in resources.other)]
    return neutralize_tags("\n".join(lines)) if lines else "(no supporting files)"


DIALECT = Dialect(
    "skill_load",
    (
        Tool("skill_load", _LOAD, _answer_load, can_load_skills),
        Tool("skill_resource", _RESOURCE, _answer_resource, can_load_skills),
    ),
    _render_prompt,
    render_plain_error,
)
