"""Skills for the OpenAI Agents SDK: ``Skills(...).attach(agent)`` returns a copy of an agent that has skills."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

from prowess.adapters.core import Conversation, SkillsAdapter, aturn, get_media, require_package
from prowess.adapters.message_types import find_query
from prowess.arguments import check_callable, check_instance, raise_bad_argument
from prowess.errors import SkillError
from prowess.tools.definitions import PDF_TYPE

require_package("agents", "openai-agents>=0.24")

from agents import (
    Agent,
    FunctionTool,
    OpenAIConversationsSession,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    custom_span,
    get_current_trace,
)
from openai import APIStatusError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agents import RunResult, Session, Tool, ToolApprovalItem, ToolInputGuardrailData
    from agents.tool_context import ToolContext

    from prowess.adapters.core import ChildTask, Turn
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.conversation.events import Event, OnEvent
    from prowess.tools.definitions import ToolDefinition, ToolResult

    ExplainRefusal = Callable[[str, str | None], str]
    NameConversation = Callable[[Any], str | None]
    OpenRun = Callable[[RunContextWrapper[Any]], "SkillRun"]


C = TypeVar("C")


@dataclass(eq=False)
class SkillRun:
    """One run of an agent: its conversation, and the context in which the state of the conversation is kept."""

    conversation: Conversation
    context: MutableMapping[str, Any] | None = None
    results: dict[str, ToolResult] = field(default_factory=dict)
    """The results of calls that were made when the SDK asked whether they need approval, until it makes the calls."""

    def __deepcopy__(self, memo: dict[int, Any]) -> SkillRun:
        """Return this object, not a copy.

        The SDK copies the usage of a run into its ``RunState``, and this object with it. The state continues the run,
        so both use one conversation.
        """
        return self


class SkillTool(FunctionTool):
    """A skill tool as a tool of the SDK."""


class Skills(SkillsAdapter):
    """Skills for agents of the OpenAI Agents SDK."""

    def _init_framework(self) -> None:
        self._name = ""
        self._slot = f"prowess_{token_hex(8)}"
        self._asks = self.conversations.may_defer
        self._turns: WeakKeyDictionary[RunContextWrapper[Any], Turn] = WeakKeyDictionary()

    # -- what a program calls ----------------------------------------------------------------------------------------

    def attach(self, agent: Agent[C], *, conversation: NameConversation | None = None) -> Agent[C]:
        """Return a copy of ``agent`` that has skills; ``agent`` stays as it is.

        ``conversation``: gets the context of a run, and returns the key of its conversation, or ``None`` for a run that
        is a conversation of its own. Without it, the runs over one session of ``bind_session`` are one conversation,
        and any other run is a conversation of its own. Raises ``SourceError`` for anything but an agent without skills.
        """
        check_instance(agent, "agent", Agent, remedy="pass an agents.Agent")
        check_callable(conversation, "conversation")
        kind = type(agent)
        if issubclass(kind, SkilledAgent):
            raise_bad_argument("agent", "must have no skills yet", agent.name, "give one Skills a list of sources")
        self._name = self._name or agent.name
        # The skills are in the class, not in the object, so that a clone of the new agent has them too.
        attached = {"skills": self, "name_conversation": staticmethod(conversation) if conversation else None}
        made: Agent[C] = object.__new__(type(kind.__name__, (SkilledAgent, kind), attached))
        vars(made).update(vars(agent.clone(tools=[*agent.tools], handoffs=[*agent.handoffs])))
        return made

    def bind_session(self, session: Session) -> Session:
        """Return a session that stores the state of the skills with the items of ``session``.

        All runs over it are one conversation, also in another process.
        """
        return cast("Session", _SkillSession(self, session))  # it passes on what it does not have itself

    def tools(self) -> list[FunctionTool]:
        """Return the skill tools for an agent whose instructions have ``prompt()``; each run is a conversation."""
        return self.make_tools(self.list_definitions(), self.open_run)

    def find_request(
        self, item: ToolApprovalItem, *, key: str = "", context: RunContextWrapper[Any] | None = None
    ) -> TrustRequest | None:
        """Return what an interruption asks a person to allow; ``None`` when the call would run nothing of a skill.

        ``key`` and ``context``: of the conversation, where a ``scope`` needs them.
        """
        return self.conversations.find_request(item.name or "", item.arguments, key, context)

    # -- runs and their conversations --------------------------------------------------------------------------------

    @property
    def entry_name(self) -> str:
        """The name of the entry in contexts and sessions; the first agent is part of it, as others may have skills."""
        return f"prowess:{self._name}"

    def open_run(
        self, ctx: RunContextWrapper[Any], name_conversation: NameConversation | None = None, entry: object = None
    ) -> SkillRun:
        """Return the run that a context of the SDK belongs to.

        It begins when it is not known: with the conversation that the program names, or that ``entry`` or the context
        has saved, or a new one.
        """
        # All context objects of one run share its usage, and a RunState has a copy of it. Attributes stay with a copy.
        if self._slot not in vars(ctx.usage):
            vars(ctx.usage)[self._slot] = self._begin_run(ctx, name_conversation, entry)
        run: SkillRun = vars(ctx.usage)[self._slot]
        self.conversations.renew(run.conversation, ctx)  # a run may go on long after it has begun
        self._note_refusals(ctx, run.conversation)
        return run

    def _begin_run(
        self, ctx: RunContextWrapper[Any], name_conversation: NameConversation | None, entry: object
    ) -> SkillRun:
        context = ctx.context
        saved = _read_entry(entry or (context.get(self.entry_name) if isinstance(context, Mapping) else None))
        key = (saved["key"] or None) if name_conversation is None else name_conversation(context)
        state = saved["saved"] if saved["key"] == (key or "") else ""
        conversation = self.conversations.open(key, state, context=ctx)
        if context is None:
            ctx.context = context = {}
        elif not state and (name_conversation is None or key is None):
            # The program may give the same context to the runs of several users: nothing of one user is kept there.
            context = None
        return SkillRun(conversation, context if isinstance(context, MutableMapping) else None)

    def _note_refusals(self, ctx: RunContextWrapper[Any], conversation: Conversation) -> None:
        """Note which calls a person has rejected: the SDK answers those without calling the tool."""
        names = [definition.name for definition in self.list_definitions()] if conversation.asked else ()
        for call_id in tuple(conversation.asked):
            if any(ctx.is_tool_approved(name, call_id) is False for name in names):
                conversation.refuse(call_id)

    def save_run(self, run: SkillRun) -> dict[str, str]:
        """Return the state of a run's conversation, and write it into the context, which ``RunState.to_json`` saves."""
        entry = {"key": run.conversation.key, "saved": run.conversation.save()}
        if run.context is not None:
            run.context[self.entry_name] = entry
        return entry

    async def prepare_turn(self, ctx: RunContextWrapper[Any], conversation: Conversation, tools: Iterable[str]) -> Turn:
        """Return the prompt and the tools of the next request of a run, and keep them for ``get_turn``."""
        self._turns[ctx] = await aturn(conversation, find_query(ctx.turn_input), tools)
        return self._turns[ctx]

    async def get_turn(self, ctx: RunContextWrapper[Any], conversation: Conversation) -> Turn:
        """Return the turn that ``prepare_turn`` has kept for this request, or a new one where it has kept none.

        The SDK asks for the tools of a request first, and for its prompt afterwards. Both come from one turn, so that
        the prompt names no tool that the request does not have.
        """
        return self._turns.pop(ctx, None) or await aturn(conversation, find_query(ctx.turn_input))

    # -- calls of skill tools ----------------------------------------------------------------------------------------

    def make_tools(
        self, definitions: Iterable[ToolDefinition], open_run: OpenRun, *, may_ask: bool = True
    ) -> list[FunctionTool]:
        """Return tools of the SDK; with ``may_ask``, a call that waits for a person interrupts the run."""
        return [
            SkillTool(
                name=definition.name,
                description=definition.description,
                params_json_schema=definition.to_json_schema()["parameters"],
                on_invoke_tool=partial(self._invoke, definition.name, open_run),
                strict_json_schema=False,
                needs_approval=partial(self._needs_approval, definition.name, open_run)
                if self._asks and may_ask
                else False,
            )
            for definition in definitions
        ]

    async def _needs_approval(
        self, name: str, open_run: OpenRun, ctx: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str
    ) -> bool:
        """Make a call, and return whether it waits for a person; the result of any other call is kept for it.

        Only the call itself shows whether something would run that nobody has allowed. Then it has done nothing.
        """
        run, key = open_run(ctx), _call_key(name, call_id, arguments)
        if key not in run.results:
            result = await run.conversation.acall(name, arguments, call_id=call_id)
            self.save_run(run)
            if result.pending is not None:
                return True
            run.results[key] = result
        return False

    async def _invoke(self, name: str, open_run: OpenRun, ctx: ToolContext[Any], arguments: str) -> Any:
        run, call_id = open_run(ctx), ctx.tool_call_id
        result = run.results.pop(_call_key(name, call_id, arguments), None)
        if result is None:
            # Only a yes that the SDK knows counts. In a child agent nobody is asked, and calls wait there all the same.
            is_approved = ctx.is_tool_approved(name, call_id) is True
            has_question = run.conversation.has_question(call_id, decision=True)
            decision = True if is_approved and has_question else None
            try:
                result = await run.conversation.acall(
                    name, arguments, call_id=call_id, decision=decision, may_ask=False
                )
            finally:
                self.save_run(run)
            if result.pending is not None and is_approved and decision is None:
                logging.getLogger("prowess").warning(_NOT_SHOWN, name)
        result = await run.conversation.arun_fork(name, result, partial(self._run_child, ctx))
        self.save_run(run)
        return render_output(result)

    # -- child agents ------------------------------------------------------------------------------------------------

    async def _run_child(self, ctx: ToolContext[Any], task: ChildTask) -> str:
        """Return the final text of a child agent, which has the tools of its parent that the skill allows."""
        parent = ctx.agent if isinstance(ctx.agent, Agent) else Agent(name="")
        given = [tool for tool in await parent.get_all_tools(ctx) if not isinstance(tool, SkillTool)]
        host_tools = [tool for tool in given if task.may_use(tool.name)]
        skill_tools = self.make_tools(task.definitions, lambda _: SkillRun(task.conversation), may_ask=False)
        child = Agent(
            name=task.prepared.title,
            instructions=task.system,
            tools=[*guard_tools(host_tools, task.explain_refusal), *skill_tools],
        )
        # The usage is that of the parent's run, so that the tokens of the child are counted there.
        run = partial(Runner.run, input=task.message, context=RunContextWrapper(ctx.context, usage=ctx.usage))
        config = ctx.run_config or RunConfig()
        # The provider for OpenAI takes any name, and the server says at the first request that it has no such model.
        model, watch = task.make_model(config.model_provider.get_model), AnswerWatch()
        if model is not None:
            try:
                # The model of the run's configuration would count more than that of the child.
                named = child.clone(model=model)
                return read_answer(await run(named, run_config=replace(config, model=None), hooks=watch))
            except APIStatusError as error:
                if watch.has_answer or not is_unknown_model(error):
                    raise
                task.report_missing_model(error)
        alike = child.clone(model=parent.model, model_settings=parent.model_settings)
        return read_answer(await run(alike, run_config=config))


_NOT_SHOWN = (
    "a call of %s was approved, but this conversation has not asked about it: nothing was done. A RunState that was "
    "saved as JSON needs a run without a context, or attach(agent, conversation=…)"
)


class AnswerWatch(RunHooks[Any]):
    """Knows whether the model of a run has answered a request."""

    has_answer = False

    async def on_llm_end(self, *_: object, **__: object) -> None:
        """Note the answer."""
        self.has_answer = True


class SkilledAgent:
    """What ``attach`` adds to the class of an agent: the prompt and the tools of each request have skills."""

    skills: Skills
    name_conversation: NameConversation | None

    def open_run(self, ctx: RunContextWrapper[Any]) -> SkillRun:
        """Return the run that a context of the SDK belongs to."""
        return self.skills.open_run(ctx, self.name_conversation)

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Return the tools of the agent, bounded by the active skills if that is enforced, and the skill tools."""
        tools = await super().get_all_tools(run_context)  # type: ignore[misc] # the other base is an Agent
        run = self.open_run(run_context)
        if run.conversation.enforce:
            tools = guard_tools(tools, run.conversation.explain_refusal)
        turn = await self.skills.prepare_turn(run_context, run.conversation, [tool.name for tool in tools])
        self.skills.save_run(run)
        return [*tools, *self.skills.make_tools(turn.tools, self.open_run)]

    async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
        """Return the instructions of the agent, and the listing of the skills."""
        instructions = await super().get_system_prompt(run_context)  # type: ignore[misc] # the other base is an Agent
        turn = await self.skills.get_turn(run_context, self.open_run(run_context).conversation)
        return "\n\n".join(filter(None, (instructions, turn.prompt))) or None


def trace_events() -> OnEvent:
    """Return a callback for ``Skills(on_event=…)`` that makes a span of the SDK's own tracing of every event.

    The span is a child of the current one, such as that of the tool call. Without a current trace nothing is recorded.
    """

    def record(event: Event) -> None:
        if get_current_trace() is not None:
            about = {"gen_ai.conversation.id": event.session, "prowess.decision": event.decision}
            data = {key: str(value) for key, value in {**event.attributes(), **about}.items() if value}
            custom_span(f"skill {event.kind}", data).__enter__().finish()

    return record


def guard_tools(tools: Iterable[Tool], explain_refusal: ExplainRefusal) -> list[Tool]:
    """Return tools that refuse the calls for which ``explain_refusal`` has a reason.

    The SDK lets nobody judge the calls of tools that are not functions, such as a search of the provider's: such a tool
    is left out while it is not allowed as a whole.
    """

    def judge(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        refusal = explain_refusal(data.context.tool_name, data.context.tool_arguments)
        return ToolGuardrailFunctionOutput.reject_content(refusal) if refusal else ToolGuardrailFunctionOutput.allow()

    guarded: list[Tool] = []
    for tool in tools:
        if isinstance(tool, FunctionTool):
            made = copy.copy(tool)
            made.tool_input_guardrails = [
                ToolInputGuardrail(judge, "allowed-tools"),
                *(tool.tool_input_guardrails or ()),
            ]
            guarded.append(made)
        elif not explain_refusal(tool.name, None):
            guarded.append(tool)
    return guarded


def read_answer(result: RunResult) -> str:
    """Return the final text of a child agent; raise ``SkillError`` when a call of it waits for a person."""
    if result.interruptions:
        tools = ", ".join(sorted({str(item.name) for item in result.interruptions}))
        raise SkillError(f"it needs a person's approval of {tools}, and nobody can be asked in a sub-agent")
    return str(result.final_output)


def is_unknown_model(error: APIStatusError) -> bool:
    """Return whether a server of models says that it does not have the model."""
    return error.status_code == HTTPStatus.NOT_FOUND or error.code == "model_not_found"


def render_output(result: ToolResult) -> str | list[Any]:
    """Return a result as the output of a tool: its text, and the image or document that was read."""
    media = get_media(result)
    if media is None:
        return result.content
    if media.media_type == PDF_TYPE:
        return [ToolOutputText(text=result.content), ToolOutputFileContent(file_data=media.url, filename=media.name)]
    return [ToolOutputText(text=result.content), ToolOutputImage(image_url=media.url, detail="auto")]


def _read_entry(entry: object) -> dict[str, str]:
    values = entry if isinstance(entry, Mapping) else {}
    return {name: str(values.get(name, "")) for name in ("key", "saved")}


def _call_key(name: str, call_id: str, arguments: dict[str, Any] | str) -> str:
    """Return what distinguishes one call from others; the arguments may be JSON text or what it stands for."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return ""
    return json.dumps([name, call_id, arguments], sort_keys=True)


class _SkillSession:
    """A session of the SDK that stores the state of the skills in the ``provider_data`` of its items.

    The state of an item is what was true when it was added: removing items goes back to the state before them. The SDK
    does not send ``provider_data`` to OpenAI, and this class returns the items without the state.
    """

    def __init__(self, skills: Skills, session: Session) -> None:
        self._skills = skills
        self._session = session
        # The items of a conversation at OpenAI have a fixed form. Its id is unique, so that it can be the key.
        self._is_stored = not isinstance(session, OpenAIConversationsSession)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the session, such as ``session_id``."""
        return getattr(self._session, name)

    async def get_items(self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None) -> list[Any]:
        """Return the items; for a run of the SDK, the conversation goes on in the state that they have."""
        items = await self._session.get_items(limit)
        if wrapper is not None:
            entry = next(filter(None, map(self._find_entry, reversed(items))), None)
            # Session ids may repeat from one database to another, so the key has a part that does not.
            key = f"{self._session.session_id} {token_hex(8)}" if self._is_stored else self._session.session_id
            self._skills.open_run(wrapper, entry=entry or {"key": key, "saved": ""})
        return [self._strip_item(item) for item in items]

    async def add_items(self, items: list[Any], *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Add items, the last one that can have it with the state of the conversation."""
        items = list(items)
        run = None if wrapper is None else self._skills.open_run(wrapper)
        # Where nobody uses skills any more, the SDK takes these two for messages and thoughts of another provider.
        places = [index for index, item in enumerate(items) if item.get("type") not in {None, "reasoning"}]
        # A conversation without a key is not that of this session: its run came back without knowing the session.
        if run is not None and run.conversation.key and places and self._is_stored:
            item = items[places[-1]]
            data = {**(item.get("provider_data") or {}), self._skills.entry_name: self._skills.save_run(run)}
            items[places[-1]] = {**item, "provider_data": data}
        await self._session.add_items(items)

    async def pop_item(self, *, wrapper: RunContextWrapper[Any] | None = None) -> Any:
        """Remove the last item, and return it; ``None`` when there is none."""
        item = await self._session.pop_item()
        return item if item is None else self._strip_item(item)

    async def clear_session(self, *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Remove all items; the next run begins a new conversation."""
        await self._session.clear_session()

    def _find_entry(self, item: Mapping[str, Any]) -> object:
        return (item.get("provider_data") or {}).get(self._skills.entry_name)

    def _strip_item(self, item: dict[str, Any]) -> dict[str, Any]:
        if self._find_entry(item) is None:
            return item
        others = {key: value for key, value in item["provider_data"].items() if key != self._skills.entry_name}
        rest = {key: value for key, value in item.items() if key != "provider_data"}
        return {**rest, "provider_data": others} if others else rest
