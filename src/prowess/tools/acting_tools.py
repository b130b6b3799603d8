"""The tools that act: one runs a skill as a sub-agent, one runs a script of a skill in a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.conversation.events import Event
from prowess.conversation.fork import PreparedFork, find_body_start, limit_fork_tools
from prowess.conversation.user_call import explain_arguments, fill_instructions, render_notes
from prowess.errors import SkillError, SkillValidationError
from prowess.spec.commands import ExpandedText
from prowess.spec.frontmatter.fields import split_names
from prowess.spec.markup import neutralize_tags
from prowess.tools.arguments import BadArgumentsError, optional_text, required_text
from prowess.tools.definitions import ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.conversation.acting.scripts import ScriptResult
    from prowess.skills.skill import Skill
    from prowess.tools.view import View

_CUT_NOTE = "[cut: it printed more]"


def prepare_fork(view: View, name: str, task: str, *, by_person: bool = False) -> PreparedFork | ToolResult:
    """Return what a sub-agent needs to carry out a skill, or the result that says why it cannot.

    Raises ``SkillError`` when the call can be made again later: approval is needed, or the host is busy.
    """
    skill = view.session.available(name) if view.may_use(name) else None
    if skill is None or not (skill.user_invocable if by_person else view.session.is_for_models(skill)):
        return _error_result(f'skill "{name}" not found', "unknown-skill")
    try:
        # Loaded anew: the allowed tools of one version must not go with the instructions of another.
        fresh = skill.load().skill
        expanded = view.session.read_expanded(name) if fresh.is_fork else ExpandedText("")
    except SkillError as error:
        # These are about the moment and not about the skill: the call can be made again.
        if error.code in {"needs-approval", "ask-needs-acall", "busy"}:
            raise
        if skill.is_fork:
            return _error_result(f"failed to read skill content: {error.message}", error.code)
        fresh, expanded = skill, ExpandedText("")
    if not fresh.is_fork:
        why = "is not configured for forked execution (set context: fork)"
        return _error_result(f'skill "{name}" {why}; use {view.options.load_tool} instead', "not-forkable")
    body_start = 0 if skill.is_inline else None
    content = view.mask_text(_fill_content(view.mask_skill(fresh), expanded, body_start, task, view.project_folder))
    toolsets = split_names(fresh.extra.get("toolsets")) or ()
    prepared = PreparedFork(
        skill.name,  # the caller may have used another spelling of it
        task,
        content,
        fresh.model or "",
        fresh.allowed_tools,
        body_start,
        # A ceiling bounds a skill that lists no tools, but that skill has asked for the approval of none.
        grants_tools=view.session.grants_tools and bool(fresh.allowed_tools),
        toolsets=toolsets,
    )
    return limit_fork_tools(prepared, view.session.ceiling)


def _fill_content(skill: Skill, expanded: ExpandedText, body_start: int | None, task: str, project: str) -> str:
    """Return a whole SKILL.md with the placeholders in its body filled from the task; the frontmatter stays."""
    start = find_body_start(expanded.text) if body_start is None else body_start
    outputs = [(begin - start, end - start) for begin, end in expanded.outputs]
    filled = fill_instructions(skill, expanded.text[start:], outputs, task or None, project)
    return expanded.text[:start] + filled.text + render_notes(explain_arguments(skill, filled, task))


def run_skill(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return a result with the skill prepared as a fork, which the toolset or the host then runs."""
    name, task = required_text(arguments, "name"), optional_text(arguments, "task")
    if view.options.fork is None:
        return _error_result("this host does not run skills as sub-agents; load the skill instead", "fork-off")
    prepared = prepare_fork(view, name, task)
    if isinstance(prepared, ToolResult):
        return prepared
    view.session.tell(Event("forked", name, {"title": prepared.title, "model": prepared.model}))
    return ToolResult(neutralize_tags(f"{prepared.title} is run by the host."), data={"skill": name}, fork=prepared)


def run_script(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Run a script of a skill, and return what it printed and how it ended."""
    name, script = required_text(arguments, "name"), required_text(arguments, "script")
    args, stdin = _parse_args(arguments.get("args")), optional_text(arguments, "stdin")
    if view.options.scripts is None:
        return _error_result("this host does not run scripts of skills", "scripts-off")
    skill = view.require_skill(name)
    # The stricter of the two counts: what the host set for scripts, and the limits of the session.
    scripts = view.options.scripts.narrow_by(view.session.limits)
    ran = scripts.run(skill, script, args, stdin=stdin, trust=view.session.consent)
    detail = {"script": script, "status": ran.status, "limit": ran.limit, "sandbox": ran.sandbox}
    view.session.tell(Event("ran", name, {**detail, "seconds": ran.seconds}))
    data = {"skill": name, **detail, "stdout": ran.stdout, "stderr": ran.stderr, "seconds": ran.seconds}
    data |= {"stdout_cut": ran.stdout_cut, "stderr_cut": ran.stderr_cut, "sandbox_gaps": list(ran.sandbox_gaps)}
    return ToolResult(render_script_result(ran), is_error=not ran.ok, data=data)


def _parse_args(value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadArgumentsError("args must be a list of strings")
    return value


def render_script_result(ran: ScriptResult) -> str:
    """Return the text that tells a model how a script ended and what it printed."""
    ended = f"stopped at its limit of {ran.limit}" if ran.limit else f"exit status {ran.status}"
    lines = [f"[{ended}, {ran.seconds:.1f} s, sandbox: {ran.sandbox}]"]
    for label, text, is_cut in (("stdout", ran.stdout, ran.stdout_cut), ("stderr", ran.stderr, ran.stderr_cut)):
        if text:
            lines += [f"--- {label} ---", text.rstrip("\n"), *([_CUT_NOTE] if is_cut else [])]
    return "\n".join(lines)


def has_scripts(skill: Skill) -> bool:
    """Return whether a skill on this machine has scripts."""
    if not skill.is_local:
        return False
    try:
        return bool(skill.resources().scripts)
    except SkillValidationError:
        return False


def _error_result(message: str, reason: str) -> ToolResult:
    return ToolResult(message, is_error=True, data={"reason": reason})
