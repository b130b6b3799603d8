"""The tools that act: one runs a skill as a sub-agent, one runs a script of a skill in a sandbox."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar

from prowess.conversation.fork import PreparedFork, find_body_start
from prowess.conversation.rendering import explain_arguments, fill_instructions, render_notes
from prowess.conversation.tool_rules import intersect_ceilings
from prowess.conversation.work_pools import get_pools
from prowess.errors import SkillError
from prowess.format.commands import ExpandedText
from prowess.format.frontmatter.fields import split_names
from prowess.text.markup import neutralize_tags
from prowess.thread_work import LoopRunningError, await_result, run_in_thread
from prowess.tools.definitions import (
    BadArgumentsError,
    ToolResult,
    error_result,
    optional_text,
    required_text,
    sanitize_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prowess.conversation.acting.scripts import ScriptResult
    from prowess.conversation.fork import ForkRunner
    from prowess.conversation.session import Session
    from prowess.tools.dialect import Dialect
    from prowess.tools.prompt import View

T = TypeVar("T")
_SCRIPT_PARAMETERS = ("name", "script", "args", "stdin")


def prepare_fork(view: View, name: str, task: str, *, by_person: bool = False) -> PreparedFork | ToolResult:
    """Return what a sub-agent needs to carry out a skill, or the result that says why it cannot.

    Raises ``SkillError`` when the call can be made again later: approval is needed, or the host is busy.
    """
    skill = view.moment.find(name)
    if skill is None or not (skill.user_invocable if by_person else view.moment.is_for_models(skill)):
        return error_result(f'skill "{name}" not found', reason="unknown-skill")
    try:
        # Loaded anew: the allowed tools of one version must not go with the instructions of another.
        fresh = skill.load().skill
        expanded = view.session.instructions.expand_text(skill, whole=True) if fresh.is_fork else ExpandedText("")
    except SkillError as error:
        # These are about the moment and not about the skill: the call can be made again.
        if error.code in {"needs-approval", "ask-needs-acall", "busy"}:
            raise
        if skill.is_fork:
            return error_result(f"failed to read skill content: {error.message}", reason=error.code)
        fresh, expanded = skill, ExpandedText("")
    if not fresh.is_fork:
        why = "is not configured for forked execution (set context: fork)"
        return error_result(
            f'skill "{name}" {why}; use {view.options.dialect.tools[0].name} instead', reason="not-forkable"
        )
    body_start = 0 if skill.is_inline else None
    start = find_body_start(expanded.text) if body_start is None else body_start
    outputs = [(begin - start, end - start) for begin, end in expanded.outputs]
    shown = view.mask_skill(fresh)
    filled = fill_instructions(shown, expanded.text[start:], outputs, task or None, view.project_folder)
    notes = render_notes(explain_arguments(shown, filled, task))
    # The frontmatter stays as it is.
    content = view.mask_text(expanded.text[:start] + filled.text + notes)
    tools, ceiling = fresh.allowed_tools, view.moment.ceiling
    if ceiling.tools is not None:
        tools = intersect_ceilings(tools or None, ceiling.tools) or ()
    return PreparedFork(
        skill.name,  # the caller may have used another spelling of it
        task,
        content,
        fresh.model or "",
        tools,
        body_start,
        # An empty list would mean every tool of the parent, so a ceiling that leaves nothing is said by a flag.
        allows_nothing=ceiling.tools is not None and not tools,
        # A ceiling bounds a skill that lists no tools, but that skill has asked for the approval of none.
        grants_tools=ceiling.grants and bool(fresh.allowed_tools),
        toolsets=split_names(fresh.extra.get("toolsets")) or (),
    )


def run_skill(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Return a result with the skill prepared as a fork, which the toolset or the host then runs."""
    name, task = required_text(arguments, "name"), optional_text(arguments, "task")
    if view.options.fork is None:
        return error_result("this host does not run skills as sub-agents; load the skill instead", reason="fork-off")
    prepared = prepare_fork(view, name, task)
    if isinstance(prepared, ToolResult):
        return prepared
    view.session.events.emit("forked", name, title=prepared.title, model=prepared.model)
    return ToolResult(neutralize_tags(f"{prepared.title} is run by the host."), data={"skill": name}, fork=prepared)


def run_script(view: View, arguments: Mapping[str, Any]) -> ToolResult:
    """Run a script of a skill, and return what it printed and how it ended."""
    # A person consents to what would run: a script must not start without arguments that have another name.
    unknown = next((key for key in arguments if key not in _SCRIPT_PARAMETERS), None)
    if unknown is not None:
        raise BadArgumentsError(f"{unknown!a} is not a parameter: it takes {', '.join(_SCRIPT_PARAMETERS)}")
    name, script = required_text(arguments, "name"), required_text(arguments, "script")
    args, stdin = _parse_args(arguments.get("args")), optional_text(arguments, "stdin")
    if view.options.scripts is None:
        return error_result("this host does not run scripts of skills", reason="scripts-off")
    skill = view.require_skill(name)
    # The stricter of the two counts: what the host set for scripts, and the limits of the session.
    scripts = view.options.scripts.narrow_by(view.moment.limits)
    ran = scripts.run(skill, script, args, stdin=stdin, trust=view.session.consent)
    detail = {"script": script, "status": ran.status, "limit": ran.limit, "sandbox": ran.sandbox}
    view.session.events.emit("ran", name, **detail, seconds=ran.seconds)
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
    """Return the string that shows a model how a script ended and what it printed."""
    ended = f"stopped at its limit of {ran.limit}" if ran.limit else f"exit status {ran.status}"
    lines = [f"[{ended}, {ran.seconds:.1f} s, sandbox: {ran.sandbox}]"]
    for label, text, is_cut in (("stdout", ran.stdout, ran.stdout_cut), ("stderr", ran.stderr, ran.stderr_cut)):
        if text:
            lines += [f"--- {label} ---", text.rstrip("\n"), *(["[cut: it printed more]"] if is_cut else [])]
    return "\n".join(lines)


# -- sub-agents --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SubAgents:
    """The sub-agents of one session, run by ``runner``; whatever that does becomes a result."""

    session: Session
    dialect: Dialect
    runner: ForkRunner

    def run_fork(self, tool: str, prepared: PreparedFork) -> ToolResult:
        """Return what the sub-agent answers to a call of ``tool``, or the result that says why it does not."""
        answer = _try_runner(self.runner, prepared)
        if isinstance(answer, Awaitable):
            answer = _try_runner(await_result, answer)
        if isinstance(answer, LoopRunningError):
            said = "the runner of forks is asynchronous: use 'await toolset.acall(…)' here"
            answer = SkillError(said, code="fork-failed")
        return self._describe_answer(tool, prepared, answer)

    async def arun_fork(self, tool: str, prepared: PreparedFork) -> ToolResult:
        """Do what ``run_fork`` does, from asynchronous code.

        Coroutines run on the loop that called, plain functions in a thread.
        """
        call = partial(_try_runner, self.runner, prepared)
        try:
            # A coroutine function runs on the host's loop, so that cancelling the call cancels it.
            is_async = iscoroutinefunction(self.runner) or iscoroutinefunction(type(self.runner).__call__)
            answer = call() if is_async else await run_in_thread(call, get_pools(self.session.limits).forks)
            answer = await answer if isinstance(answer, Awaitable) else answer
        except Exception as error:  # noqa: BLE001 - whatever the host's runner does, the conversation goes on
            answer = error
        return self._describe_answer(tool, prepared, answer)

    def _describe_answer(self, tool: str, prepared: PreparedFork, answer: object) -> ToolResult:
        """Return the result with the answer, cut when it is longer than ``Limits`` allows, or with what was raised."""
        if isinstance(answer, Exception):
            return self._describe_failure(tool, prepared, answer)
        if not isinstance(answer, str):
            return self._describe_failure(tool, prepared, SkillError("the sub-agent gave no text"), end=":")
        limit = self.session.limits.max_fork_output_bytes
        data = answer.encode("utf-8", "surrogatepass")
        kept = data[:limit].decode("utf-8", "ignore")  # the cut may fall into the middle of a character
        text = answer if len(data) <= limit else f"{kept}\n[cut: the answer is longer]"
        return ToolResult(text, data={"skill": prepared.skill_name, "title": prepared.title})

    def _describe_failure(self, tool: str, fork: PreparedFork, error: Exception, end: str = " failed:") -> ToolResult:
        """Return the result for a fork without an answer; only the host learns what its own code raised."""
        code = "busy" if isinstance(error, SkillError) and error.code == "busy" else "fork-failed"
        # Only our own errors are written for models: what a host's code raises may hold its secrets.
        if isinstance(error, SkillError):
            why = error.message
        else:
            self.session.events.report_host_error("fork", error, fork.skill_name)
            why = "the host could not run it"
        self.session.events.emit("refused", fork.skill_name, tool=tool, code=code)
        return sanitize_error(self.dialect.render_error(tool, SkillError(f"{fork.title}{end} {why}", code=code)))


def _try_runner(run: Callable[[T], object], argument: T) -> object:
    """Return what a call gives, or what it raises: a ``StopIteration`` cannot be raised in a coroutine."""
    try:
        return run(argument)
    except Exception as error:  # noqa: BLE001 - whatever the host's runner does, the conversation goes on
        return error
