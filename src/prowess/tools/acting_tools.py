"""Tools that act: a skill run as a sub-agent, a script of a skill run in a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.errors import SkillError, SkillValidationError
from prowess.runtime.events import Event
from prowess.runtime.fork import PreparedFork, find_body_start, limit_fork_tools
from prowess.runtime.user_call import explain_arguments, fill_instructions, render_notes
from prowess.spec.commands import ExpandedText
from prowess.spec.frontmatter.fields import split_names
from prowess.spec.markup import neutralize_tags
from prowess.tools.arguments import BadArgumentsError, optional_text, required_text
from prowess.tools.definitions import ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.runtime.acting.scripts import ScriptResult
    from prowess.skills.skill import Skill
    from prowess.tools.view import View

_CUT_NOTE = "[cut: it printed more]"


def prepare_fork(view: View, name: str, task: str, *, by_person: bool = False) -> PreparedFork | ToolResult:
    """What a sub-agent needs to carry out a skill; or the result that says why it cannot."""
    skill = view.session.available(name) if view.may_use(name) else None
    if skill is None or not (skill.user_invocable if by_person else view.session.is_for_models(skill)):
        return _error_result(f'skill "{name}" not found', "unknown-skill")
    try:
        fresh = skill.load().skill  # the tools of one version must not go with the instructions of another
        expanded = view.session.read_expanded(name) if fresh.is_fork else ExpandedText("")
    except SkillError as error:
        if error.code in {"needs-approval", "ask-needs-acall", "busy"}:  # the call can be made again
            raise
        if skill.is_fork:
            return _error_result(f"failed to read skill content: {error.message}", error.code)
        fresh, expanded = skill, ExpandedText("")
    if not fresh.is_fork:
        why = "is not configured for forked execution (set context: fork)"
        return _error_result(f'skill "{name}" {why}; use {view.options.load_tool} instead', "not-forkable")
    head = 0 if skill.is_inline else None
    content = view.mask_text(_fill_content(view.mask_skill(fresh), expanded, head, task, view.project_folder))
    toolsets = split_names(fresh.extra.get("toolsets")) or ()
    prepared = PreparedFork(
        skill.name,  # which need not be how the caller wrote it
        task,
        content,
        fresh.model or "",
        fresh.allowed_tools,
        head,
        grants_tools=view.session.grants_tools,
        toolsets=toolsets,
    )
    return limit_fork_tools(prepared, view.session.ceiling)


def _fill_content(skill: Skill, expanded: ExpandedText, given: int | None, task: str, project: str) -> str:
    """A whole SKILL.md with the placeholders in its instructions filled from the task; its frontmatter stays."""
    head = find_body_start(expanded.text) if given is None else given
    outputs = [(begin - head, end - head) for begin, end in expanded.outputs]
    filled = fill_instructions(skill, expanded.text[head:], outputs, task or None, project)
    return expanded.text[:head] + filled.text + render_notes(explain_arguments(skill, filled, task))


def run_skill(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """The skill prepared as a fork, for the toolset or the host to run."""
    name, task = required_text(arguments, "name"), optional_text(arguments, "task")
    if view.options.fork is None:
        return _error_result("this host does not run skills as sub-agents; load the skill instead", "fork-off")
    prepared = prepare_fork(view, name, task)
    if isinstance(prepared, ToolResult):
        return prepared
    view.session.tell(Event("forked", name, {"title": prepared.title, "model": prepared.model}))
    return ToolResult(neutralize_tags(f"{prepared.title} is run by the host."), data={"skill": name}, fork=prepared)


def run_script(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """What a script printed, and how it ended."""
    name, script = required_text(arguments, "name"), required_text(arguments, "script")
    args, stdin = _parse_args(arguments.get("args")), optional_text(arguments, "stdin")
    if view.options.scripts is None:
        return _error_result("this host does not run scripts of skills", "scripts-off")
    skill = view.require_skill(name)
    scripts = view.options.scripts.narrow_by(view.session.limits)
    found = scripts.run(skill, script, args, stdin=stdin, trust=view.session.consent)
    detail = {"script": script, "status": found.status, "limit": found.limit, "sandbox": found.sandbox}
    view.session.tell(Event("ran", name, {**detail, "seconds": found.seconds}))
    data = {"skill": name, **detail, "stdout": found.stdout, "stderr": found.stderr, "seconds": found.seconds}
    data |= {"stdout_cut": found.stdout_cut, "stderr_cut": found.stderr_cut, "sandbox_gaps": list(found.sandbox_gaps)}
    return ToolResult(_render_script_result(found), is_error=not found.ok, data=data)


def _parse_args(value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadArgumentsError("args must be a list of strings")
    return value


def _render_script_result(found: ScriptResult) -> str:
    """A script's outcome as a model reads it."""
    ended = f"stopped at its limit of {found.limit}" if found.limit else f"exit status {found.status}"
    rows = [f"[{ended}, {found.seconds:.1f} s, sandbox: {found.sandbox}]"]
    for label, text, cut in (("stdout", found.stdout, found.stdout_cut), ("stderr", found.stderr, found.stderr_cut)):
        if text:
            rows += [f"--- {label} ---", text.rstrip("\n"), *([_CUT_NOTE] if cut else [])]
    return "\n".join(rows)


def has_scripts(skill: Skill) -> bool:
    """Whether a skill has anything to run."""
    if not skill.is_local:
        return False
    try:
        return bool(skill.resources().scripts)
    except SkillValidationError:
        return False


def _error_result(message: str, reason: str) -> ToolResult:
    return ToolResult(message, is_error=True, data={"reason": reason})
