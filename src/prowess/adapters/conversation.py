"""One conversation of an agent: its prompt, its tools, its calls, and what people decided about them."""

from __future__ import annotations

import json
import logging
import re
from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from prowess.conversation.acting.trust_request import TrustRequest
from prowess.conversation.fork import fork_system_message, fork_user_message
from prowess.conversation.tool_rules import judge_call
from prowess.errors import NotTrustedError, SkillError, SourceError
from prowess.tools.acting import SubAgents
from prowess.tools.definitions import BadArgumentsError, find_media, parse_arguments, sanitize_error
from prowess.tools.dialects import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from prowess.conversation.fork import ForkRunner, PreparedFork
    from prowess.conversation.moment import Scope
    from prowess.conversation.session import Session
    from prowess.tools.definitions import Media, ToolDefinition, ToolResult
    from prowess.tools.toolset import Toolset

    Arguments = Mapping[str, Any] | str | bytes | None
    RunChild = Callable[["ChildTask"], "str | Awaitable[str]"]

M = TypeVar("M")

_MAX_ASKED = 1_000
"""Calls of one conversation about which people were asked and have not decided; the oldest are forgotten."""
_USED = "used"
"""Marks a question whose yes was used up by a call that did not end by itself. A no still answers it."""
_ROUND = "round"
"""How often a yes about the same call was used up before this question."""

_ASK_AGAIN = (
    "The files or the arguments are no longer those that the person was asked about: nothing was done. Make the same "
    "call again, so that the person is asked about what would run now."
)

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

    def is_approved(self, tool: str, arguments: Arguments = None) -> bool:
        """Return whether the host lets the skill approve a call of one of the host's tools, and the skill lists it."""
        return self.prepared.allows(tool, find_command(arguments)) == "allowed"

    def explain_refusal(self, tool: str, arguments: Arguments = None) -> str:
        """Return why the child may not make a call of one of the host's tools; ``""`` when it may.

        The skill that it carries out bounds it, and with ``enforce`` the skills that it has loaded itself.
        """
        if self.prepared.allows(tool, find_command(arguments)) == "refused":
            return f"The skill {self.prepared.skill_name!r} does not allow this call of {tool}."
        return self.conversation.explain_refusal(tool, arguments)


class UsedQuestions:
    """The questions of one conversation whose yes was used, in memory: also when its framework goes back to a save."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, None] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def add(self, name: str) -> bool:
        """Note that a yes is used; return whether it is the first one."""
        with self._lock:
            is_first = name not in self._names
            self._names[name] = None
            while len(self._names) > _MAX_ASKED:
                self._names.popitem(last=False)
        return is_first

    def discard(self, name: str) -> None:
        """Let a yes to this question count again."""
        self._names.pop(name, None)


@dataclass(eq=False)
class Conversation:
    """One conversation of an agent: a toolset over its own session, and the calls that wait for a person.

    An adapter passes every call of a skill tool to ``call`` or ``acall``. A result with ``pending`` did nothing yet:
    the adapter shows the request in the framework's own way, and makes the call again with ``decision``. A yes counts
    for that one call and ends with it, even when the call is cancelled. A no counts for all equal calls that follow.
    """

    key: str
    toolset: Toolset
    enforce: bool = False
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The requests that were shown to people, as ``TrustRequest.to_dict`` writes them, by the id of the call."""
    last_save: str = ""
    """What ``save`` returned last, or what the conversation was restored from."""
    scope: Scope | None = None
    """What the host lets the conversation have; ``None`` before anything was said."""
    used: UsedQuestions = field(default_factory=UsedQuestions, repr=False)
    """The questions whose yes was used, of all states of this conversation."""
    available_tools: tuple[str, ...] | Literal["any"] = ()
    """Tools that the agent has besides those that the adapter sees; ``"any"``: whichever a skill needs."""
    step: str = ""
    """The framework's id of the step in which the conversation was used last; ``""`` where the adapter gives none."""
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def session(self) -> Session:
        """The session: the active skills of this conversation, and what may run in it."""
        return self.toolset.session

    def note_tools(self, names: Iterable[str] | None) -> bool:
        """Note the names of all tools of the agent besides skill tools; return whether they are others than before.

        ``None``: the adapter does not know them.
        """
        if names is None or self.available_tools == "any":
            return False
        before = self.session.moment().available_tools
        self.session.set_available_tools((*names, *self.available_tools))
        return self.session.moment().available_tools != before

    def find_lost(self, read_messages: Callable[[], str]) -> str:
        """Return a recap where the messages, as one string, no longer have what the active skills were loaded with.

        Frameworks and hosts summarize a conversation that has become long, and the model would forget its skills.
        """
        moment = self.session.moment()
        loaded = [name for name, entry in moment.visible_active.items() if not entry.preloaded]
        # Without backslashes: in messages as JSON the quotes of an attribute are escaped.
        messages = read_messages().replace("\\", "") if loaded else ""
        is_lost = any(f'name="{name}"' not in messages for name in loaded)
        return self.toolset.recap() if is_lost else ""

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
        """Answer a model's call of a skill tool; what goes wrong in it is a result.

        ``call_id``: the framework's id of the call. ``decision``: what a person decided about the request that a former
        call with this id returned in ``pending``. A yes counts only if the call would still run exactly that; otherwise
        the result is pending again. After a no nothing runs. ``run_child``: runs a skill as a child agent; without it
        the skill is refused. ``may_ask``: whether the adapter shows a pending result to a person. If not, it is an
        error for the model, and no later decision is about it. Raises ``NotTrustedError`` (code ``no-question``) for a
        decision about a call that nobody was asked about, or whose yes was used already.
        """
        shown = self._take_question(call_id, decision)
        if decision is False:
            return self._refuse(name, shown)
        with self._approve(shown):
            result = self.toolset.call(name, arguments)
        result = self._note_question(result, call_id, may_ask=may_ask, is_decided=decision is True)
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
        shown = self._take_question(call_id, decision)
        if decision is False:
            return self._refuse(name, shown)
        with self._approve(shown):
            result = await self.toolset.acall(name, arguments)
        result = self._note_question(result, call_id, may_ask=may_ask, is_decided=decision is True)
        return result if run_child is None else await self.arun_fork(name, result, run_child)

    async def arun_fork(self, name: str, result: ToolResult, run_child: RunChild) -> ToolResult:
        """Return the answer of the child agent that a result of ``name`` prepares; any other result as it is."""
        if result.fork is None:
            return result

        async def run(prepared: PreparedFork) -> str:  # a coroutine, so that it runs on the loop of the framework
            made = run_child(self._make_task(prepared))
            return made if isinstance(made, str) else await made

        return await self._sub_agents(run).arun_fork(name, result.fork)

    # -- decisions of people -----------------------------------------------------------------------------------------

    def name_question(self, call_id: str) -> str:
        """Return an id of the question about a call; ``""`` when there is none.

        It is another one when the call would run something else, and when a yes to the former question was used up.
        """
        shown = self.asked.get(call_id)
        return "" if shown is None else _name_question(call_id, shown)

    def has_question(self, call_id: str, *, decision: bool) -> bool:
        """Return whether ``call`` takes this decision about a call: somebody was asked, and no yes was used yet."""
        shown = self.asked.get(call_id)
        return shown is not None and not (decision and (_USED in shown or _name_question(call_id, shown) in self.used))

    def show_again(self, call_id: str, shown: dict[str, Any]) -> None:
        """Note that a person was shown a request, where the framework keeps what was shown, and which yes was used."""
        self.used.discard(_name_question(call_id, shown))
        self.asked[call_id] = shown

    def refuse(self, call_id: str) -> bool:
        """Note that a person refused a call which the framework does not make again; return whether we had asked."""
        with self._lock:
            shown = self.asked.pop(call_id, None)
        if shown is not None:
            self._note_refusal(shown)
        return shown is not None

    def _take_question(self, call_id: str, decision: bool | None) -> dict[str, Any]:  # noqa: FBT001 - as ``call`` has it
        """Return the request that a decision is about, which no other yes can be about from now on."""
        if decision is None:
            return {}
        with self._lock:
            if not self.has_question(call_id, decision=decision):
                raise _no_question_error(call_id)
            shown = self.asked.pop(call_id)
            if decision:
                self.asked[call_id] = {**shown, _USED: True}
                if not self.used.add(_name_question(call_id, shown)):  # another run of this conversation was faster
                    raise _no_question_error(call_id)
        return shown

    def _approve(self, shown: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Apply a person's yes to the call that is made in the block, if it would run exactly what was shown."""
        # Only what the person was shown is approved: the files or the arguments may have changed meanwhile.
        request = self._read_request(shown) if shown else None
        return nullcontext() if request is None else self.session.consent.approve_call(request)

    def _note_question(self, result: ToolResult, call_id: str, *, may_ask: bool, is_decided: bool) -> ToolResult:
        """Remember what a person is going to be asked about a call; return the result that the adapter gets."""
        with self._lock:
            former = self.asked.pop(call_id, {})  # the call has ended, and the question about it with it
            if result.pending is None:
                return result
            # A request that nobody sees is not remembered: a provider may give the id of this call to another one,
            # whose yes would then count for it.
            if not may_ask:
                return replace(result, is_error=True, content=_ASK_AGAIN if is_decided else result.content)
            number = former.get(_ROUND, 0) + (_USED in former)
            shown = {**result.pending.to_dict(), _ROUND: number}
            while _name_question(call_id, shown) in self.used:  # a yes to an earlier question must not count for it
                shown[_ROUND] += 1
            self.asked[call_id] = shown if shown[_ROUND] else result.pending.to_dict()
            while len(self.asked) > _MAX_ASKED:
                del self.asked[next(iter(self.asked))]
        return result

    def _refuse(self, name: str, shown: Mapping[str, Any]) -> ToolResult:
        """Return the result of a call that a person refused; nobody is asked about an equal call later."""
        # The call is not made: under a grant that was given meanwhile it would run.
        self._note_refusal(shown)
        refusal = NotTrustedError("a person was asked whether this may run, and said no", code="refused-by-person")
        return self._describe_error(name, refusal)

    def refuse_decision(self, name: str, call_id: str) -> ToolResult:
        """Return what ``call`` raises for a decision about nothing, as a result, for callers that are far away."""
        return self._describe_error(name, _no_question_error(call_id))

    def _describe_error(self, name: str, error: NotTrustedError) -> ToolResult:
        return sanitize_error(DIALECTS[self.toolset.dialect].render_error(name, error))

    def _note_refusal(self, shown: Mapping[str, Any]) -> None:
        request = self._read_request(shown)
        if request is None:
            self.session.consent.refuse_id(str(shown["id"]))
        else:
            self.session.refuse(request)

    def _read_request(self, shown: Mapping[str, Any]) -> TrustRequest | None:
        """Return the request that a person was shown; ``None`` where its skill is gone, or nothing may run here."""
        if self.session.trust is None:
            return None
        try:
            return TrustRequest.from_dict(shown, self.session.catalog)
        except SkillError:
            return None

    # -- child agents ------------------------------------------------------------------------------------------------

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
        # What the skills list, not what they approve: a host that only enforces has not let them approve anything.
        if judge_call(tool, find_command(arguments), self.session.listed_tools):
            return ""
        names = ", ".join(self.session.active_skills)
        return f"This call of {tool} is not in the allowed-tools of the active skills ({names})."

    def _has_bounded_skills(self) -> bool:
        """Return whether skills are active and each of them has ``allowed-tools``."""
        active = [self.session.skill(name) for name in self.session.active_skills]
        return bool(active) and all(skill.allowed_tools for skill in active)

    # -- saving ------------------------------------------------------------------------------------------------------

    def save(self) -> str:
        """Return the conversation as text for the framework's checkpoint: its session, and what waits for people."""
        self.last_save = self.write()
        return self.last_save

    def write(self) -> str:
        """Return what ``save`` returns; it does not become the last save."""
        with self._lock:
            asked = dict(self.asked)
        return json.dumps({"version": 1, "session": self.session.save(), "asked": asked})


def _name_question(call_id: str, shown: Mapping[str, Any]) -> str:
    number = shown.get(_ROUND, 0)
    return f"{call_id}:{shown['id']}" + (f":{number}" if number else "")


def _no_question_error(call_id: str) -> NotTrustedError:
    message = f"nobody waits for a decision about the call {call_id!r}, so nothing was done"
    return NotTrustedError(message, code="no-question")


def parse_save(saved: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the saved session and the requests that waited for people; raise ``SourceError`` for any other text."""
    try:
        data = json.loads(saved)
        session, asked = data["session"], data["asked"]
        is_ours = data["version"] == 1 and isinstance(session, str) and isinstance(asked, dict)
    except (ValueError, TypeError, KeyError, RecursionError):
        is_ours = False
    if not is_ours or not all(map(_is_question, asked.values())):
        raise SourceError("this is not a conversation that an adapter saved", code="bad-save")
    return session, asked


def _is_question(shown: object) -> bool:
    return isinstance(shown, dict) and "id" in shown and isinstance(shown.get(_ROUND, 0), int)


def turn(conversation: Conversation, query: str = "", tools: Iterable[str] | None = None) -> Turn:
    """Return the prompt and the tools of one request, for one state of the conversation.

    ``tools``: the names of all tools of the agent besides skill tools, for skills that need some.
    """
    conversation.note_tools(tools)
    prompt = conversation.toolset.prompt(query)
    return Turn(prompt, conversation.toolset.tools(query))


async def aturn(conversation: Conversation, query: str = "", tools: Iterable[str] | None = None) -> Turn:
    """Return what ``turn`` returns, made in a thread; an asynchronous selector is awaited on the caller's loop."""
    conversation.note_tools(tools)
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
    return next(iter(find_media(result.data)), None)
