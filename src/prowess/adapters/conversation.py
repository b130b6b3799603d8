"""One conversation of an agent: its prompt, its tools, its calls, and what people decided about them."""

from __future__ import annotations

import json
import logging
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from prowess.errors import NotTrustedError, SkillError, SourceError
from prowess.runtime.acting.trust_request import TrustRequest
from prowess.runtime.fork import fork_system_message, fork_user_message
from prowess.tools.arguments import BadArgumentsError, parse_arguments
from prowess.tools.dialects import DIALECTS
from prowess.tools.media import find_media
from prowess.tools.refusals import sanitize_error
from prowess.tools.sub_agents import SubAgents

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from prowess.runtime.fork import ForkRunner, PreparedFork
    from prowess.runtime.session import Session
    from prowess.tools.definitions import ToolDefinition, ToolResult
    from prowess.tools.media import Media
    from prowess.tools.toolset import Toolset

    Arguments = Mapping[str, Any] | str | bytes | None
    RunChild = Callable[["ChildTask"], "str | Awaitable[str]"]

M = TypeVar("M")

_MAX_ASKED = 1_000
"""Calls of one conversation about which people were asked and have not decided; the oldest are forgotten."""

_logger = logging.getLogger("prowess")


class Turn(NamedTuple):
    """What a model gets for one request: the block for its system prompt, and the skill tools to offer."""

    prompt: str
    tools: tuple[ToolDefinition, ...]


class ChildTask(NamedTuple):
    """A skill that runs as a child agent: what it may do, and the conversation that its skill tools belong to."""

    prepared: PreparedFork
    conversation: Conversation

    @property
    def model(self) -> str:
        """The model that the skill asks for; ``""``: the parent's."""
        return self.prepared.model

    @property
    def system(self) -> str:
        """The system prompt of the child: its role, and the skills that it can load itself."""
        return "\n\n".join(filter(None, (fork_system_message(self.prepared), self.conversation.toolset.prompt())))

    @property
    def message(self) -> str:
        """The first user message of the child: the request and the instructions."""
        return fork_user_message(self.prepared)

    @property
    def agent_name(self) -> str:
        """A name for the child agent, of letters, digits and underscores, as frameworks demand it."""
        return "skill_" + re.sub(r"\W", "_", self.prepared.skill_name)

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The skill tools of the child: each that it can be offered, now or later."""
        return self.conversation.toolset.possible_tools()

    def make_model(self, make: Callable[[str], M | None]) -> M | None:
        """Return the model that the skill asks for, as ``make`` makes it from the name.

        ``None``: the child gets the parent's model. So it is when the skill names no model, and when ``make`` raises or
        returns nothing, which is logged.
        """
        if not self.model:
            return None
        try:
            made = make(self.model)
        except Exception as error:  # noqa: BLE001 - each framework and provider has errors of its own
            self.report_missing_model(error)
            return None
        if made is None:
            self.report_missing_model("nothing here has this name")
        return made

    def report_missing_model(self, reason: object) -> None:
        """Log that the child gets the parent's model, although the skill names another one."""
        message = "The skill %r names the model %r. The agent's own model is used instead: %s"
        _logger.warning(message, self.prepared.skill_name, self.model, str(reason).partition("\n")[0])

    def may_use(self, tool: str) -> bool:
        """Return whether the child gets one of the host's tools, whole or in part; ``explain_refusal`` judges calls."""
        return bool(self.prepared.child_tools([tool]))

    def explain_refusal(self, tool: str, arguments: Arguments = None) -> str:
        """Return why the child may not make a call of one of the host's tools; ``""`` when it may.

        The skill that it carries out bounds it, and with ``enforce`` the skills that it has loaded itself.
        """
        if self.prepared.allows(tool, find_command(arguments)) == "refused":
            return f"The skill {self.prepared.skill_name!r} does not allow this call of {tool}."
        return self.conversation.explain_refusal(tool, arguments)


@dataclass(eq=False)
class Conversation:
    """One conversation of an agent: a toolset over its own session, and the calls that wait for a person.

    An adapter passes every call of a skill tool to ``call`` or ``acall``. A result with ``pending`` did nothing yet:
    the adapter shows the request in the framework's own way, and makes the call again with ``decision``.
    """

    key: str
    toolset: Toolset
    enforce: bool = False
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The requests that were shown to people, as ``TrustRequest.to_dict`` writes them, by the id of the call."""
    last_save: str = ""
    """What ``save`` returned last, or what the conversation was restored from."""
    step: str = ""
    """The framework's id of the step in which the conversation was used last; ``""`` where the adapter gives none."""

    @property
    def session(self) -> Session:
        """The session: the active skills of this conversation, and what may run in it."""
        return self.toolset.session

    # -- calls of skill tools ----------------------------------------------------------------------------------------

    def call(
        self,
        name: str,
        arguments: Arguments = None,
        *,
        call_id: str = "",
        decision: bool | None = None,
        run_child: RunChild | None = None,
        may_ask: bool = True,
    ) -> ToolResult:
        """Answer a model's call of a skill tool; what goes wrong is a result, and nothing is raised.

        ``call_id``: the framework's id of the call. ``decision``: what a person decided about the request that a former
        call with this id returned in ``pending``. A yes counts only if the call would still run exactly that; otherwise
        the result is pending again. After a no nothing runs. ``run_child``: runs a skill as a child agent; without it
        the skill is refused. ``may_ask``: whether the adapter shows a pending result to a person. If not, it is an
        error for the model, and no later decision is about it.
        """
        if decision is False:
            return self._refuse(name, call_id)
        shown = self.asked.pop(call_id, None)
        result = self.toolset.call(name, arguments)
        if decision is True and self._approve(result, shown):
            result = self.toolset.call(name, arguments)
        result = self._note_question(result, call_id, may_ask=may_ask)
        if result.fork is None or run_child is None:
            return result
        return self._sub_agents(lambda prepared: run_child(self._make_task(prepared))).run_fork(name, result.fork)

    async def acall(
        self,
        name: str,
        arguments: Arguments = None,
        *,
        call_id: str = "",
        decision: bool | None = None,
        run_child: RunChild | None = None,
        may_ask: bool = True,
    ) -> ToolResult:
        """Do what ``call`` does, from asynchronous code; cancelling it ends scripts and child agents as well."""
        if decision is False:
            return self._refuse(name, call_id)
        shown = self.asked.pop(call_id, None)
        result = await self.toolset.acall(name, arguments)
        if decision is True and self._approve(result, shown):
            result = await self.toolset.acall(name, arguments)
        result = self._note_question(result, call_id, may_ask=may_ask)
        return result if run_child is None else await self.arun_fork(name, result, run_child)

    async def arun_fork(self, name: str, result: ToolResult, run_child: RunChild) -> ToolResult:
        """Return the answer of the child agent that a result of ``name`` prepares; any other result as it is."""
        if result.fork is None:
            return result

        async def run(prepared: PreparedFork) -> str:  # a coroutine, so that it runs on the loop of the framework
            made = run_child(self._make_task(prepared))
            return made if isinstance(made, str) else await made

        return await self._sub_agents(run).arun_fork(name, result.fork)

    def _approve(self, result: ToolResult, shown: Mapping[str, Any] | None) -> bool:
        """Apply a person's yes to what was shown; return whether the call has to be made again."""
        request = result.pending
        # Only what the person was shown is approved: the files or the arguments may have changed meanwhile.
        if request is None or shown is None or shown["id"] != request.id:
            return False
        self.session.approve(request)
        return True

    def _note_question(self, result: ToolResult, call_id: str, *, may_ask: bool) -> ToolResult:
        """Remember what a person is going to be asked about a call; return the result that the adapter gets."""
        if result.pending is None:
            return result
        # A request that nobody sees is not remembered: a provider may give the id of this call to another one, whose
        # yes would then count for it.
        if not may_ask:
            return replace(result, is_error=True)
        self.asked[call_id] = result.pending.to_dict()
        while len(self.asked) > _MAX_ASKED:
            del self.asked[next(iter(self.asked))]
        return result

    def _refuse(self, name: str, call_id: str) -> ToolResult:
        """Return the result of a call that a person refused; nobody is asked about an equal call later."""
        # The call is not made: under a grant that was given meanwhile it would run.
        with suppress(KeyError, SkillError):  # nobody was asked about this call, or its skill is gone
            self.session.refuse(TrustRequest.from_dict(self.asked.pop(call_id), self.session.catalog))
        refusal = NotTrustedError("a person was asked whether this may run, and said no", code="refused-by-person")
        return sanitize_error(DIALECTS[self.toolset.dialect].render_error(name, refusal))

    def _sub_agents(self, run: ForkRunner) -> SubAgents:
        return SubAgents(self.session, DIALECTS[self.toolset.dialect], run)

    def _make_task(self, prepared: PreparedFork) -> ChildTask:
        return ChildTask(prepared, Conversation(self.key, self.toolset.child(prepared), self.enforce))

    # -- the host's own tools ----------------------------------------------------------------------------------------

    def explain_refusal(self, tool: str, arguments: Arguments = None) -> str:
        """Return why the active skills do not allow a call of one of the host's tools; ``""`` when they do.

        Without ``enforce`` everything is allowed. So it is while an active skill has no ``allowed-tools``, because
        nothing bounds that skill.
        """
        if not self.enforce or not self._has_bounded_skills():
            return ""
        if self.session.allows(tool, find_command(arguments)):
            return ""
        names = ", ".join(self.session.active_skills)
        return f"This call of {tool} is not in the allowed-tools of the active skills ({names})."

    def _has_bounded_skills(self) -> bool:
        """True when skills are active and each of them has ``allowed-tools``."""
        active = [self.session.skill(name) for name in self.session.active_skills]
        return bool(active) and all(skill.allowed_tools for skill in active)

    # -- saving ------------------------------------------------------------------------------------------------------

    def save(self) -> str:
        """Return the conversation as text for the framework's checkpoint: its session, and what waits for people."""
        saved = {"version": 1, "session": self.session.save(), "asked": self.asked}
        self.last_save = json.dumps(saved)
        return self.last_save


def parse_save(saved: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the saved session and the requests that waited for people; raise ``SourceError`` for any other text."""
    try:
        data = json.loads(saved)
        session, asked = data["session"], data["asked"]
        is_ours = data["version"] == 1 and isinstance(session, str) and isinstance(asked, dict)
    except (ValueError, TypeError, KeyError, RecursionError):
        is_ours = False
    if not is_ours or not all(isinstance(shown, dict) and "id" in shown for shown in asked.values()):
        raise SourceError("this is no conversation that an adapter saved", code="bad-save")
    return session, asked


def turn(conversation: Conversation, query: str = "") -> Turn:
    """Return the prompt and the tools of one request, for one state of the conversation."""
    prompt = conversation.toolset.prompt(query)
    return Turn(prompt, conversation.toolset.tools(query))


async def aturn(conversation: Conversation, query: str = "") -> Turn:
    """Return what ``turn`` returns, made in a thread; an asynchronous selector is awaited on the caller's loop."""
    prompt = await conversation.toolset.aprompt(query)
    return Turn(prompt, await conversation.toolset.atools(query))


def find_command(arguments: Arguments) -> str | None:
    """Return the command line in the arguments of a call of a host's tool, which patterns such as Bash(git:*) match."""
    try:
        command = parse_arguments(arguments).get("command")
    except BadArgumentsError:
        return None
    return command if isinstance(command, str) else None


def get_media(result: ToolResult) -> Media | None:
    """Return the image or PDF document that a call read; ``None`` when it read text."""
    return find_media(result.data)
