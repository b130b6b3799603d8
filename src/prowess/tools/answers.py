"""What each tool answers. A handler gives a result or raises; the toolset turns what is raised into a result."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from prowess.errors import (
    BinaryResourceError,
    PathTraversalError,
    ResourceError,
    ResourceTooLargeError,
    SkillError,
    SkillNotActiveError,
    SkillValidationError,
    UnknownSkillError,
)
from prowess.escapes import escape_line
from prowess.runtime.origins import tagged
from prowess.spec.hidden import one_line
from prowess.spec.markup import CONTENT, neutralize_tags, wrap_text
from prowess.tools.arguments import BadArgumentsError, optional_count, optional_text, required_text
from prowess.tools.content import file_element, skill_content
from prowess.tools.definitions import ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.library.skill import Skill
    from prowess.model import Resources
    from prowess.tools.view import View

    Arguments = Mapping[str, Any]

_LINES = 2_000
_HITS = 10
_MOST_HITS = 50


def _error(message: str, **data: Any) -> ToolResult:  # noqa: ANN401 - data for the host
    return ToolResult(message, is_error=True, data=data)


def _described(error: Exception) -> str:
    return escape_line(error.message if isinstance(error, SkillError) else str(error))


def plain_error(_tool: str, error: Exception) -> ToolResult:
    """The message alone."""
    return _error(_described(error), reason=getattr(error, "code", "bad-arguments"))


def s1_error(tool: str, error: Exception) -> ToolResult:
    """Arguments that cannot be read are told by the name of the call."""
    if isinstance(error, BadArgumentsError):
        return _error(f"parsing {tool.removeprefix('skill__')} args: {error}", reason="bad-arguments")
    return plain_error(tool, error)


def s2_error(tool: str, error: Exception) -> ToolResult:
    """What could not be read is told as such."""
    if isinstance(error, SkillValidationError):
        return _error(f"reading file: {error.message}", reason=error.code)
    return plain_error(tool, error)


# -- load_skill (S0) ---------------------------------------------------------------------------------------------------


def s0_load(view: View, arguments: Arguments) -> ToolResult:
    """The body, byte for byte."""
    name = optional_text(arguments, "skill_name")
    if not name:
        return _error("load_skill: skill_name is required", reason="bad-arguments")
    if not _reachable(view, name):
        if not view.skills:
            return _error("load_skill: no skills are configured", reason="unknown-skill")
        available = ", ".join(skill.name for skill in view.skills)
        return _error(f'load_skill: skill "{name}" not found; available: {available}', reason="unknown-skill")
    return ToolResult(view.session.activate_text(name), data={"skill": name})


def s0_error(_tool: str, error: Exception) -> ToolResult:
    """The message after the name of the tool."""
    kind = "invalid params: " if isinstance(error, BadArgumentsError) else ""
    return _error(f"load_skill: {kind}{_described(error)}", reason=getattr(error, "code", "bad-arguments"))


def _reachable(view: View, name: str) -> bool:
    return view.may_use(name) and view.session.is_available(name)


# -- skill__activate (S1) ----------------------------------------------------------------------------------------------


def _as_json(data: dict[str, Any]) -> ToolResult:
    return ToolResult(json.dumps(data, ensure_ascii=False), data=data)


def s1_activate(view: View, arguments: Arguments) -> ToolResult:
    """Instructions and the tools that came with them."""
    name = required_text(arguments, "name")
    _allowed(view, name)
    activation = view.session.activate(name)
    return _as_json({"instructions": activation.instructions, "added_tools": list(activation.added_tools)})


def s1_deactivate(view: View, arguments: Arguments) -> ToolResult:
    """The tools that went."""
    return _as_json({"removed_tools": list(_put_aside(view, required_text(arguments, "name")))})


def _put_aside(view: View, name: str) -> tuple[str, ...]:
    """End a skill; one that the model may not have is none of its business."""
    if not view.may_use(name):
        raise SkillNotActiveError(f"skill {name!r} is not active")
    return view.session.deactivate(name)


def s1_read(view: View, arguments: Arguments) -> ToolResult:
    """The content of a file."""
    name, path = required_text(arguments, "skill_name"), required_text(arguments, "path")
    _allowed(view, name)
    return _as_json({"content": view.session.read_resource(name, path, view.options.max_bytes)})


def _allowed(view: View, name: str) -> None:
    if not view.may_use(name):
        raise UnknownSkillError(name, (skill.name for skill in view.skills))


# -- read_skill (S2) ---------------------------------------------------------------------------------------------------


def s2_read(view: View, arguments: Arguments) -> ToolResult:
    """The whole file, frontmatter included."""
    name = optional_text(arguments, "name")
    if not _reachable(view, name):
        return _error(f'skill "{name}" not found', reason="unknown-skill")
    return ToolResult(view.session.activate_text(name, whole=True), data={"skill": name})


def s2_file(view: View, arguments: Arguments) -> ToolResult:
    """The text of a file."""
    name, path = optional_text(arguments, "skill_name"), optional_text(arguments, "path")
    if not _reachable(view, name):
        return _error(f'skill "{name}" not found', reason="unknown-skill")
    if view.session.skill(name).is_inline:
        return _error(f'skill "{name}" is defined inline and has no supporting files', reason="no-files")
    try:
        content = view.session.read_resource(name, path, view.options.max_bytes)
    except PathTraversalError:
        return _error(f'invalid file path "{one_line(path)}"', reason="path-escape")
    return ToolResult(content, data={"skill": name, "path": path})


# -- skill_load (S3) ---------------------------------------------------------------------------------------------------


def _s3_refused(view: View, name: str) -> ToolResult | None:
    if not view.may_use(name):
        allowed = ", ".join(view.options.allowed or ()) or "(none)"
        message = f"skill '{name}' is not available to this agent. allowed: [{allowed}]"
        return _error(message, skill=name, reason="not_allowed")
    if not view.session.is_available(name):
        return _error(f"skill '{name}' is allowed but not registered", skill=name, reason="missing")
    return None


def s3_load(view: View, arguments: Arguments) -> ToolResult:
    """The body, and a hint at its files."""
    name = required_text(arguments, "name")
    refused = _s3_refused(view, name)
    if refused is not None:
        return refused
    activation = view.session.activate(name)
    skill = activation.skill
    data: dict[str, Any] = {"skill": name, "path": skill.location}
    found = skill.resources()
    hint = _s3_hint(found) if view.options.hint_resources else ""
    if hint:
        data["resources"] = {"scripts": found.scripts, "references": found.references, "assets": found.assets}
    return ToolResult(activation.instructions + hint, data=data)


def _s3_hint(found: Resources) -> str:
    groups = ((found.scripts, "script"), (found.references, "reference"), (found.assets, "asset"))
    counts = ", ".join(f"{len(names)} {what}(s)" for names, what in groups if names)
    if not counts:
        return ""
    return f"\n\n---\nThis skill ships {counts}. Call skill_resource to list or read them."


def s3_resource(view: View, arguments: Arguments) -> ToolResult:
    """The list of files, or one of them."""
    name = required_text(arguments, "name")
    path = optional_text(arguments, "resource")
    refused = _s3_refused(view, name)
    if refused is not None:
        return refused
    skill = view.session.skill(name)
    if not path:
        return ToolResult(_s3_listing(skill.resources()), data={"skill": name})
    most = 65_536 if view.options.max_bytes is None else view.options.max_bytes
    try:
        content = view.session.read_resource(name, path, most)
    except ResourceTooLargeError:
        message = f"resource '{path}' exceeds {most} bytes — refusing to inline it"
        return _error(message, skill=name, resource=path, reason="too_large")
    except ResourceError as error:
        return _error(f"cannot read '{path}': {error.message}", skill=name, resource=path, reason="read_failed")
    return ToolResult(content, data={"skill": name, "resource": path})


def _s3_listing(found: Resources) -> str:
    rows: list[str] = []
    for group in ("scripts", "references", "assets"):
        names: tuple[str, ...] = getattr(found, group)
        if names:
            rows += [f"## {group}", *(f"- {group}/{one_line(name)}" for name in names), ""]
    if found.other:
        rows += ["## other", *(f"- {one_line(name)}" for name in found.other), ""]
    return neutralize_tags("\n".join(rows).rstrip("\n")) if rows else "(no supporting files)"


# -- from_scratch__use_skill (S4) --------------------------------------------------------------------------------------


def s4_use(view: View, arguments: Arguments) -> ToolResult:
    """Instructions in their element, with the folder and the files."""
    name = arguments.get("name")
    if not isinstance(name, str):
        raise BadArgumentsError("'name' argument must be a string.")
    if not _reachable(view, name):
        raise BadArgumentsError(f"Skill '{name}' not found.")
    activation = view.session.activate(name)
    return ToolResult(_s4_content(activation.skill, activation.instructions), data={"skill": name})


def _s4_content(skill: Skill, instructions: str) -> str:
    folder = f"Skill directory: {one_line(skill.folder)}\n" if skill.folder else ""
    found = skill.resources()
    paths = found.paths[: len(found.paths) - len(found.other)]
    if not paths:
        return wrap_text(CONTENT, skill.name, f"{instructions}\n\n{folder}")
    files = "".join(map(file_element, paths))
    rule = "Relative paths in this skill are relative to the skill directory."
    listed = f"{rule}\n<skill_resources>\n{files}</skill_resources>"
    return wrap_text(CONTENT, skill.name, f"{instructions}\n\n{folder}{listed}")


def s4_error(_tool: str, error: Exception) -> ToolResult:
    """A JSON object with the kind of error and its message."""
    data = {"error_type": "ValueError", "message": _described(error)}
    return ToolResult(json.dumps(data, ensure_ascii=False), is_error=True, data=data)


# -- prowess -----------------------------------------------------------------------------------------------------------


def load(view: View, arguments: Arguments) -> ToolResult:
    """Instructions in their element, with the folder, the rule for paths and the files."""
    name = required_text(arguments, "name")
    view.offered(name)
    activation = view.session.activate(name)
    files = view.options.hint_resources
    content = skill_content(
        activation.skill, activation.instructions, activation.note, files=files, outputs=activation.outputs
    )
    data = {"skill": name, "location": activation.skill.location, "added_tools": list(activation.added_tools)}
    return ToolResult(content, data=data)


def unload(view: View, arguments: Arguments) -> ToolResult:
    """That the skill is put aside."""
    name = required_text(arguments, "name")
    removed = _put_aside(view, name)
    return ToolResult(
        neutralize_tags(f"{one_line(name)} is put aside."), data={"skill": name, "removed_tools": list(removed)}
    )


def read_file(view: View, arguments: Arguments) -> ToolResult:
    """The text of a file, whole or in lines; a binary one as data."""
    name, path = required_text(arguments, "name"), required_text(arguments, "path")
    offset = optional_count(arguments, "offset", 0)
    limit = optional_count(arguments, "limit", _LINES, least=1)
    view.offered(name)
    skill = view.session.skill(name)
    try:
        whole = skill.read_resource(path, skill.limits.max_file_bytes)
    except BinaryResourceError:
        return _binary(view, skill, path)
    found = _ranged(view, whole, {"skill": name, "path": path, "offset": offset}, limit)
    return replace(found, content=tagged(skill, found.content)) if skill.told_by else found


def _most(view: View) -> int:
    given = view.options.max_bytes
    return view.session.max_resource_bytes if given is None else given


def _ranged(view: View, whole: str, data: dict[str, Any], limit: int) -> ToolResult:
    """Lines from an offset, as many as fit; the note at the end says where to go on."""
    lines = io.StringIO(whole, newline="\n").readlines()
    offset, left = data["offset"], _most(view)
    taken: list[str] = []
    for line in lines[offset : offset + limit]:
        left -= len(line.encode())
        if left < 0:
            break
        taken.append(line)
    if not taken and offset < len(lines):
        message = (
            f"line {offset} of {data['path']!r} has {len(lines[offset].encode())} bytes; at most {_most(view)} are read"
        )
        raise ResourceTooLargeError(message, data["path"])
    following = offset + len(taken)
    shown = "".join(taken)
    if following < len(lines):
        shown += f"\n[lines {offset}-{following - 1} of {len(lines)}; go on with offset={following}]"
    view.session.note_read(data["skill"], data["path"], len(shown))
    return ToolResult(shown, data={**data, "lines": len(taken), "total_lines": len(lines)})


def _binary(view: View, skill: Skill, path: str) -> ToolResult:
    content = skill.read_bytes(path, None if view.options.max_bytes is None else view.options.max_bytes)
    view.session.note_read(skill.name, path, len(content))
    message = f"{one_line(path)} is not text ({len(content)} bytes); the host has it as data."
    data = {"skill": skill.name, "path": path, "type": "binary", "size": len(content)}
    return ToolResult(neutralize_tags(message), data={**data, "base64": base64.b64encode(content).decode("ascii")})


def search(view: View, arguments: Arguments) -> ToolResult:
    """Names and descriptions that fit the query."""
    query = required_text(arguments, "query")
    limit = min(optional_count(arguments, "limit", _HITS, least=1), _MOST_HITS)
    findable = {skill.name for skill in view.findable}
    found = view.session.catalog.search(query, len(view.session.catalog))
    hits = [hit for hit in found if hit.name in findable][:limit]
    if not hits:
        return ToolResult("No skill fits these words. Try others, or go on without a skill.", data={"names": []})
    rows = "\n".join(f"- {one_line(hit.name)}: {one_line(hit.description)}" for hit in hits)
    return ToolResult(
        neutralize_tags(f"Skills that fit, best first:\n{rows}"), data={"names": [hit.name for hit in hits]}
    )


def helpful_error(tool: str, error: Exception) -> ToolResult:
    """What went wrong and what to do next."""
    code = getattr(error, "code", "bad-arguments")
    if isinstance(error, BadArgumentsError):
        return _error(f"{tool}: {error}. Call it again with the parameters of its schema.", reason="bad-arguments")
    hint = getattr(error, "hint", "")
    return _error(f"{_described(error)}. {hint[:1].upper()}{hint[1:]}." if hint else _described(error), reason=code)
