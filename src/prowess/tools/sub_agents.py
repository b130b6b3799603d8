"""Runs prepared forks with the host's runner, and turns its answer or its failure into a result for the model."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING

from prowess.conversation.events import Event
from prowess.conversation.work_pools import get_pools
from prowess.errors import SkillError
from prowess.thread_work import LoopRunningError, await_result
from prowess.tools.definitions import ToolResult
from prowess.tools.refusals import sanitize_error

if TYPE_CHECKING:
    from prowess.conversation.fork import ForkRunner, PreparedFork
    from prowess.conversation.session import Session
    from prowess.tools.dialect import Dialect


class SubAgents:
    """The sub-agents of one session, run by ``runner``; whatever that does becomes a result."""

    def __init__(self, session: Session, dialect: Dialect, runner: ForkRunner) -> None:
        self._session = session
        self._dialect = dialect
        self._runner = runner

    def run_fork(self, tool: str, prepared: PreparedFork) -> ToolResult:
        """Return what the sub-agent answers to a call of ``tool``, or the result that says why there is no answer."""
        try:
            made = self._runner(prepared)
            answer = _await_answer(made) if isinstance(made, Awaitable) else made
        except Exception as error:  # noqa: BLE001 - whatever the host's runner does, the conversation goes on
            return self._describe_failure(tool, prepared, error)
        return self._describe_answer(tool, prepared, answer)

    async def arun_fork(self, tool: str, prepared: PreparedFork) -> ToolResult:
        """Do what ``run_fork`` does, from asynchronous code.

        Coroutines run on the loop that called, plain functions in a thread.
        """
        runner = self._runner
        try:
            if _is_coroutine_function(runner):  # runs on the host's loop, so that cancelling the call cancels it
                made: object = runner(prepared)
            else:
                made = await get_pools(self._session.limits).forks.run(partial(_try_runner, runner, prepared))
            if isinstance(made, Exception):
                return self._describe_failure(tool, prepared, made)
            answer = await made if isinstance(made, Awaitable) else made
        except Exception as error:  # noqa: BLE001 - whatever the host's runner does, the conversation goes on
            return self._describe_failure(tool, prepared, error)
        return self._describe_answer(tool, prepared, answer)

    def _describe_answer(self, tool: str, prepared: PreparedFork, answer: object) -> ToolResult:
        """Return the result with the answer, cut when it is longer than ``Limits`` allows."""
        if not isinstance(answer, str):
            return self._describe_failure(tool, prepared, SkillError("the sub-agent gave no text"), verb=":")
        limit = self._session.limits.max_fork_output_bytes
        data = answer.encode("utf-8", "surrogatepass")
        kept = data[:limit].decode("utf-8", "ignore")  # the cut may fall into the middle of a character
        text = answer if len(data) <= limit else f"{kept}\n[cut: the answer is longer]"
        return ToolResult(text, data={"skill": prepared.skill_name, "title": prepared.title})

    def _describe_failure(
        self, tool: str, prepared: PreparedFork, error: Exception, *, verb: str = " failed:"
    ) -> ToolResult:
        """Return the result for a fork without an answer; only the host learns what its own code raised."""
        code = "busy" if isinstance(error, SkillError) and error.code == "busy" else "fork-failed"
        # Only our own errors are written for models: what a host's code raises may hold its secrets.
        if isinstance(error, SkillError):
            why = error.message
        else:
            self._session.report_host_error("fork", error, prepared.skill_name)
            why = "the host could not run it"
        self._session.tell(Event("refused", prepared.skill_name, {"tool": tool, "code": code}))
        return sanitize_error(self._dialect.render_error(tool, SkillError(f"{prepared.title}{verb} {why}", code=code)))


def _is_coroutine_function(runner: ForkRunner) -> bool:
    """Return whether a call of ``runner`` runs nothing yet: it is a coroutine function, or its ``__call__`` is one."""
    return iscoroutinefunction(runner) or iscoroutinefunction(getattr(runner, "__call__", None))  # noqa: B004 - its kind


def _try_runner(runner: ForkRunner, prepared: PreparedFork) -> object:
    """Return what a runner gives, or what it raises: a ``StopIteration`` cannot be raised in a coroutine."""
    try:
        return runner(prepared)
    except Exception as error:  # noqa: BLE001 - whatever the host's runner does, the conversation goes on
        return error


def _await_answer(answer: Awaitable[str]) -> str:
    """Return what a coroutine gives, in plain code; raises ``SkillError`` inside a running loop."""
    try:
        return await_result(answer)
    except LoopRunningError:
        raise SkillError(
            "the runner of forks is asynchronous: use 'await toolset.acall(…)' here", code="fork-failed"
        ) from None
