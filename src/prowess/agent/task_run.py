"""One run of the agent: a task, a model and the skills of a catalogue; its events are recorded and reported."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from pydantic_ai import Agent
from pydantic_ai.capabilities import ResolveModelId
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelRetry,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import infer_model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from prowess.adapters.pydantic_ai import Skills
from prowess.agent.api_keys import KeyFilter, hide_keys, hide_keys_in
from prowess.agent.approval import ToolGate
from prowess.agent.models import bound_answers, explain_failure, is_client_error
from prowess.agent.own_tools import OWN_TOOLS, OwnToolset
from prowess.agent.task_result import AgentEvent, CallRecord, TaskResult, TurnTokens
from prowess.agent.work_folder import WorkFolder
from prowess.conversation.acting.sandbox import Protected, choose_sandbox, describe_closed
from prowess.conversation.acting.sandbox.protection import check_folder, name_repository
from prowess.conversation.acting.scripts import Scripts
from prowess.conversation.acting.trust import Trust
from prowess.conversation.tool_rules import is_tool_pattern, parse_tool_pattern
from prowess.errors import ModelError, SandboxError, SkillError, SourceError
from prowess.limits import DEFAULT_LIMITS, Limits
from prowess.text.quantities import format_count
from prowess.thread_work import run_in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Sequence

    from pydantic_ai.messages import AgentStreamEvent, ModelMessage
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRun

    from prowess.agent.approval import DecidedBy, Person, ToolRequest
    from prowess.agent.task_result import AgentEventKind, OnAgentEvent, TaskStatus
    from prowess.agent.transcript import EarlierRun, Transcript
    from prowess.conversation.acting.sandbox import Kind
    from prowess.conversation.events import Event
    from prowess.discovery.live import Live
    from prowess.select.selectors import Selector
    from prowess.skills.catalog import Catalog


TrustChoice = Literal["ask", "granted", "never"]

INSTRUCTIONS = (
    "You carry out the user's task in a working folder, with skills and tools. When a skill fits the task, load it "
    "before you begin, and follow it. Use paths relative to the working folder. A call may be refused: then nothing "
    "was done, and you go on without it or say what you need. Answer briefly when the task is done."
)
_GO_ON = "The run was interrupted. Go on with the task where you stopped."


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """How a run is bounded, and who decides in it.

    ``folder``: the working folder. ``tools``: the ceiling, such as ``("Read", "Bash(git:*)")``. ``skills_approve``:
    whether an active skill approves the calls within the ceiling that its ``allowed-tools`` list. Set it only where the
    user named the ceiling: otherwise one line in a downloaded skill decides what runs. ``person``: whoever is asked;
    without one, nothing is asked and what would need an answer is refused. ``trust``: ``ask`` asks about scripts and
    commands of skills that are not granted, ``granted`` runs only what is granted, ``never`` runs nothing. A grant
    approves no call of a tool.
    """

    folder: str
    tools: tuple[str, ...] = OWN_TOOLS
    person: Person | None = None
    trust: TrustChoice = "ask"
    sandbox: Kind = "auto"
    max_turns: int = DEFAULT_LIMITS.max_agent_turns
    max_tokens: int = DEFAULT_LIMITS.max_agent_tokens
    request_seconds: int | None = None
    """How long one request to the model may take; ``None``: as long as the client of the provider lets it."""
    selector: Selector | Literal["auto"] | None = "auto"
    budget: int | None = None
    filter: str = ""
    limits: Limits = DEFAULT_LIMITS
    grants: str | None = None
    """The file with the grants; by default the user's own."""
    places: tuple[str, ...] = ()
    """The folders that the skills are from, for a run that goes on from the transcript; empty: the standard places."""
    skills_approve: bool = False

    def __post_init__(self) -> None:
        """Raise ``SourceError`` for a tool that the agent does not have."""
        for written in self.tools:
            if not is_tool_pattern(written) or parse_tool_pattern(written).tool not in OWN_TOOLS:
                raise SourceError(f"{written!r} is not a tool of the agent: it has {', '.join(OWN_TOOLS)}")


async def run_task(
    task: str,
    catalog: Catalog | Live,
    model: Model,
    options: TaskOptions,
    *,
    on_event: OnAgentEvent | None = None,
    transcript: Transcript | None = None,
    earlier: EarlierRun | None = None,
) -> TaskResult:
    """Carry out one task with a model and the skills of a catalogue; return what happened.

    ``earlier``: the runs that this one goes on from; then ``task`` may be empty. A model that fails, a limit that is
    reached, and a working folder that cannot be protected from commands, are in the result. When the call is cancelled,
    scripts and child agents are ended and the transcript is completed, before the cancellation is passed on. Raises
    ``SourceError`` for an invalid option.
    """
    run = _TaskRun(catalog, model, options, earlier, _RunReport(on_event, transcript, options.limits))
    async with model:  # its connections are closed at the end
        with bound_answers(model, options.limits):
            return await run.run(task)


class _TaskRun:
    """One run: the agent of the framework, from its making to the result."""

    def __init__(
        self,
        catalog: Catalog | Live,
        model: Model,
        options: TaskOptions,
        earlier: EarlierRun | None,
        report: _RunReport,
    ) -> None:
        self._options = options
        self._model = model
        self._earlier = earlier
        self._key = earlier.key if earlier else uuid4().hex
        self._report = report
        # The folder of the scripts is the working folder: what a script is for is there.
        trust = self._make_trust()
        protect = (trust.path, *report.find_files())
        self._scripts = Scripts(options.sandbox, options.folder, limits=options.limits, protect=protect)
        self._protected: Protected | None = None
        """What commands could not change when the run began; ``None`` without a sandbox."""
        self._skills = Skills(
            catalog,
            trust=trust,
            scripts=self._scripts if options.trust != "never" else None,
            filter=options.filter,
            budget=options.budget,
            selector=options.selector,
            on_event=report.tell_from_thread,
            limits=options.limits,
        )

    def _make_trust(self) -> Trust:
        person, policy = self._options.person, self._options.trust
        if policy == "ask" and person is not None:
            return Trust(self._options.grants, ask=person.ask_trust)
        # Without somebody to ask, what is granted still runs, and everything else is refused at once.
        return Trust(self._options.grants, policy="never" if policy == "never" else "granted")

    async def run(self, task: str) -> TaskResult:
        """Run the task to its end."""
        try:
            sandbox = await run_in_thread(self._describe_sandbox)
        except SandboxError as refused:
            self._report.begin(self._describe_start(task, {"sandbox": "", "protected": [], "closed": ""}))
            return self._finish("failed", None, refused)
        self._report.begin(self._describe_start(task, sandbox))
        agent_run: AgentRun[Any, str] | None = None
        try:
            async with self._make_agent().iter(
                task or _GO_ON,
                message_history=self._earlier.messages if self._earlier else None,
                conversation_id=self._key,
                usage_limits=UsageLimits(
                    request_limit=self._options.max_turns, total_tokens_limit=self._options.max_tokens
                ),
            ) as agent_run:
                with Agent.parallel_tool_call_execution_mode("sequential"):  # a person is asked one thing at a time
                    await self._drive(agent_run)
            record = self._report.record
            if record.is_cut:
                return self._finish("limit", agent_run, self._explain_cut(), text=record.text)
            return self._finish("done", agent_run, text=record.text)
        except asyncio.CancelledError:
            self._finish("interrupted", agent_run)
            raise
        except UsageLimitExceeded as error:
            return self._finish("limit", agent_run, self._explain_limit(agent_run, error))
        except (AgentRunError, UserError, ModelRetry, SkillError) as error:
            return self._finish("failed", agent_run, explain_failure(error, self._model))
        except Exception as error:
            # A client of a provider has errors of its own, say for a stream that is cut; anything else is a mistake.
            if not is_client_error(error):
                self._finish("failed", agent_run)
                raise
            return self._finish("failed", agent_run, explain_failure(error, self._model))

    def _make_agent(self) -> Agent[None, str]:
        options, report = self._options, self._report
        gate = ToolGate(
            lambda: self._skills.session(self._key),
            options.tools,
            options.person,
            report.tell_decision,
            skills_approve=options.skills_approve,
        )
        work = WorkFolder(options.folder, options.limits)
        own = OwnToolset(options.tools, work, self._scripts, gate, report.tell_child_call)
        made = ModelSettings(cache=True)
        if options.request_seconds:
            made["timeout"] = options.request_seconds
        return Agent(
            self._model,
            instructions=INSTRUCTIONS,
            # Each turn repeats all that was said before: providers that can are asked to keep it.
            model_settings=made,
            capabilities=[self._skills, ResolveModelId(self._resolve_model)],
            toolsets=[own],
            # A model that calls tools wrongly again and again is ended by the number of turns, like any other loop.
            retries=options.max_turns,
        )

    def _resolve_model(self, _: object, name: str) -> Model:
        """Return the model that runs a skill which asks for the model ``name``.

        Another model of the run's provider is made with that same provider, so that address and key stay as they are.
        Any other name gets the model of the run: the person who starts a run decides which provider receives the
        conversation, and the author of a skill does not. A server at an address has no other models here: its host may
        be called as a provider is.
        """
        provider = self._model.provider
        if provider is None or name.partition(":")[0] != self._model.system:
            return self._model
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        if isinstance(provider, OpenAICompatibleProvider):
            return self._model
        return infer_model(name, provider_factory=lambda _: provider)

    async def _drive(self, agent_run: AgentRun[Any, str]) -> None:
        """Take the steps of the run one after the other, and report what happens in each."""
        node = agent_run.next_node
        while not Agent.is_end_node(node):
            if Agent.is_model_request_node(node):
                async with node.stream(agent_run.ctx) as events:
                    await self._report.tell_stream(events)
                node = await agent_run.next(node)
                self._end_turn(agent_run)
            elif Agent.is_call_tools_node(node):
                async with node.stream(agent_run.ctx) as events:
                    await self._report.tell_stream(events)
                node = await agent_run.next(node)
            else:
                node = await agent_run.next(node)
            self._write_messages(agent_run)

    def _end_turn(self, agent_run: AgentRun[Any, str]) -> None:
        """Tell the response that has just come.

        Raises ``ModelError`` for a model that says nothing again and again: the framework would ask to the end.
        """
        response = next((m for m in reversed(agent_run.all_messages()) if isinstance(m, ModelResponse)), None)
        if response is None:
            return
        self._report.tell_turn(response)
        empty = self._report.record.empty_answers
        if empty >= self._options.limits.max_empty_answers:
            answers = format_count(empty, "answer")
            message = f"the last {answers} of {self._model.model_name} held neither text nor calls"
            raise ModelError(message, code="empty-answers")

    # -- the beginning and the end -----------------------------------------------------------------------------------

    def _describe_start(self, task: str, sandbox: dict[str, Any]) -> dict[str, Any]:
        return {
            **sandbox,
            "key": self._key,
            "task": task,
            "model": f"{self._model.system}:{self._model.model_name}",
            "folder": self._options.folder,
            "tools": list(self._options.tools),
            "skills_approve": self._options.skills_approve,
            "trust": self._options.trust,
            "places": list(self._options.places),
            "skills": len(self._skills.catalog),
            "resumed": self._earlier is not None,
        }

    def _describe_sandbox(self) -> dict[str, Any]:
        """Return the sandbox that commands run in, and what they cannot change in the working folder.

        Raises ``SandboxError`` for a working folder that cannot be protected from them.
        """
        options = self._options
        check_folder(options.folder)
        has_bash = any(parse_tool_pattern(written).tool == "Bash" for written in options.tools)
        kind, protected = "", Protected()
        if has_bash or options.trust != "never":
            with suppress(SandboxError):  # each command then says what is missing
                kind = choose_sandbox(options.sandbox).name
        if kind not in {"", "none"}:
            try:
                protected = self._scripts.find_protected()
            except SandboxError:
                if has_bash:  # else there may be no script that runs, and one that does is refused
                    raise
                kind = ""
            else:
                self._protected = protected
        closed = describe_closed(kind, protected)
        return {"sandbox": kind, "protected": list(protected.entries), "closed": closed[0] if closed else ""}

    def _find_made(self) -> tuple[str, ...]:
        """Return what is protected now and was not there at the beginning."""
        if self._protected is None:
            return ()
        try:
            now = self._scripts.find_protected()
        except SandboxError:
            return ()
        before = {name_repository(path) for path in self._protected.entries}
        made = set(now.entries) - set(self._protected.entries)
        # A new repository as a whole; of one that was there already, what is new in it.
        return tuple(sorted({path if name_repository(path) in before else name_repository(path) for path in made}))

    def _finish(
        self,
        status: TaskStatus,
        agent_run: AgentRun[Any, str] | None,
        error: SkillError | None = None,
        *,
        text: str = "",
    ) -> TaskResult:
        """Write what is left to write, and return the result."""
        self._write_messages(agent_run)
        record = self._report.record
        usage = agent_run.usage if agent_run is not None else None
        result = TaskResult(
            status,
            text,
            tuple(record.loaded),
            tuple(record.files),
            tuple(record.scripts),
            tuple(record.forks),
            tuple(record.calls.values()),
            tuple(record.turns),
            TurnTokens(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) if usage else TurnTokens(0, 0),
            self._find_made(),
            tuple(agent_run.all_messages()) if agent_run is not None else (),
            error,
        )
        self._report.end(result)
        return result

    def _write_messages(self, agent_run: AgentRun[Any, str] | None) -> None:
        if agent_run is not None:
            self._report.write_messages(agent_run.all_messages())

    def _explain_cut(self) -> ModelError:
        message = f"the server of {self._model.model_name} cut the last answer: it is as long as one answer may be"
        return ModelError(message, code="answer-cut")

    def _explain_limit(self, agent_run: AgentRun[Any, str] | None, error: UsageLimitExceeded) -> ModelError:
        usage = agent_run.usage if agent_run is not None else None
        # Tokens first: they are counted after each answer, so that no run with too many of them reaches its last turn.
        if usage is not None and usage.total_tokens > self._options.max_tokens:
            bounds = f"the run has used {usage.total_tokens:,} tokens; it may use {self._options.max_tokens:,}"
            return ModelError(bounds, code="token-limit")
        if usage is not None and usage.requests >= self._options.max_turns:
            return ModelError(
                f"the run has made {format_count(usage.requests, 'request')}, as many as it may", code="turn-limit"
            )
        return ModelError(str(error), code="token-limit")


_PART_CHARS = 100  # a call with no arguments takes memory too


@dataclass
class _RunRecord:
    """What a run has done so far."""

    calls: dict[str, CallRecord] = field(default_factory=dict)
    turns: list[TurnTokens] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)
    scripts: list[tuple[str, str, int]] = field(default_factory=list)
    forks: list[str] = field(default_factory=list)
    text: str = ""
    is_cut: bool = False
    """Whether the provider cut the last answer, because it had as many tokens as one answer may have."""
    empty_answers: int = 0
    """How many of the last answers held neither text nor calls."""


class _RunReport:
    """What happens in one run: a record of it, and an ``AgentEvent`` for the listener and the transcript.

    An exception of the listener or the transcript ends the run: the call that reports the event raises it. No event has
    a key of the environment that a server repeats, also if its parts come in several pieces of text.
    """

    def __init__(self, on_event: OnAgentEvent | None, transcript: Transcript | None, limits: Limits) -> None:
        self.record = _RunRecord()
        self._limits = limits
        self._on_event = on_event
        self._transcript = transcript
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: Exception | None = None
        self._key_filter = KeyFilter()

    def find_files(self) -> tuple[str, ...]:
        """Return the files that are written: the transcript, if there is one."""
        return (self._transcript.path,) if self._transcript is not None else ()

    def begin(self, detail: dict[str, Any]) -> None:
        """Report that the run begins on the loop of the caller; what the engine does earlier is not reported."""
        self._loop = asyncio.get_running_loop()
        self._tell("start", detail)

    def end(self, result: TaskResult) -> None:
        """Tell that the run is over."""
        self._tell("end", result.to_dict())

    def write_messages(self, messages: Sequence[ModelMessage]) -> None:
        """Add the messages that are new to the transcript, if there is one."""
        if self._transcript is not None:
            self._transcript.write_messages(messages)

    def _tell(self, kind: AgentEventKind, detail: dict[str, Any]) -> None:
        if kind != "text":
            self._tell_text(self._key_filter.finish())
        if self._failure is not None:
            raise self._failure
        event = AgentEvent(kind, hide_keys_in(detail))
        if self._transcript is not None:
            self._transcript.write_event(event)
        if self._on_event is not None:
            self._on_event(event)

    # -- what the model does -----------------------------------------------------------------------------------------

    async def tell_stream(self, events: AsyncIterable[AgentStreamEvent]) -> None:
        """Tell the text, the calls and the results of one step of the framework, as they come.

        Raises ``ModelError`` for an answer of the model that does not end.
        """
        received, most = 0, self._limits.max_model_answer_chars
        async for event in events:
            received += _measure_piece(event)
            if received > most:
                raise ModelError(f"an answer of the model has more than {most:,} characters")
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                self._tell_text(self._key_filter.add(event.part.content))
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                self._tell_text(self._key_filter.add(event.delta.content_delta))
            elif isinstance(event, FunctionToolCallEvent):
                call = event.part
                self._tell_call(call.tool_call_id, CallRecord(call.tool_name, _parse_arguments(call.args)))
            elif isinstance(event, FunctionToolResultEvent):
                self._tell_result(event)

    def _tell_text(self, text: str) -> None:
        if text:
            self._tell("text", {"text": text})

    def _tell_call(self, call_id: str, call: CallRecord) -> None:
        self.record.calls[call_id] = call
        self._tell("call", {"id": call_id, "tool": call.tool, "arguments": call.arguments, "skill": call.skill})

    def _tell_result(self, event: FunctionToolResultEvent) -> None:
        part = event.part
        call_id = part.tool_call_id
        is_error = part.outcome != "success"
        content = part.content if isinstance(part.content, str) else part.model_response_str()
        call = self.record.calls.get(call_id, CallRecord(part.tool_name or "", {}))
        self.record.calls[call_id] = replace(call, is_error=is_error, content=content)
        self._tell("result", {"id": call_id, "tool": part.tool_name, "is_error": is_error, "content": content})

    def tell_turn(self, response: ModelResponse) -> None:
        """Tell the tokens of a response that has come to its end."""
        record, usage = self.record, response.usage
        tokens = TurnTokens(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
        record.turns.append(tokens)
        record.text = hide_keys(response.text or "")
        record.is_cut = response.finish_reason == "length"
        record.empty_answers = 0 if response.text or response.tool_calls else record.empty_answers + 1
        number = len(record.turns)
        detail = {"turn": number, "sent": tokens.sent, "received": tokens.received, "cached": tokens.cached}
        self._tell("turn", detail)

    # -- what the engine and the agent's own tools do ----------------------------------------------------------------

    def tell_from_thread(self, event: Event) -> None:
        """Tell an event of the engine, which comes from a thread of its own."""
        if self._loop is None or event.kind in {"listed", "cut"}:
            return
        self._loop.call_soon_threadsafe(self._tell_skill_later, event)

    def _tell_skill_later(self, event: Event) -> None:
        """Tell an event of the engine as a callback of the loop, which would only log an error."""
        try:
            self._tell_skill(event)
        except Exception as error:  # noqa: BLE001 - the next event of the run raises it: a full disk, a closed pipe
            self._failure = error

    def _tell_skill(self, event: Event) -> None:
        record = self.record
        if event.kind == "activated" and event.skill not in record.loaded:
            record.loaded.append(event.skill)
        elif event.kind == "forked":
            record.forks.append(event.skill)
        elif event.kind == "read":
            record.files.append((event.skill, str(event.detail.get("path", ""))))
        elif event.kind == "ran":
            status = event.detail.get("status")
            script = (event.skill, str(event.detail.get("script", "")), status if isinstance(status, int) else -1)
            record.scripts.append(script)
        names = ("path", "script", "status", "sandbox", "code", "command")
        detail = {name: event.detail[name] for name in names if name in event.detail}
        self._tell("skill", {"what": event.kind, "skill": event.skill, **detail})

    def tell_decision(self, request: ToolRequest, is_allowed: bool, by: DecidedBy) -> None:  # noqa: FBT001 - as told
        """Tell the listener whether a call of one of the agent's own tools was allowed, and who decided it."""
        detail = {"tool": request.tool, "subject": request.subject, "is_allowed": is_allowed, "by": by}
        self._tell("decision", {**detail, "skill": request.skill})

    def tell_child_call(self, skill: str, tool: str, arguments: Any) -> None:
        """Tell that the child agent of a skill calls one of the agent's own tools."""
        # The framework's id of the call is not known here: the number of calls so far distinguishes them.
        call_id = f"{skill}/{len(self.record.calls)}"
        self._tell_call(call_id, CallRecord(tool, _parse_arguments(arguments), skill=skill))


def _measure_piece(event: AgentStreamEvent) -> int:
    """Return how many characters of a model's answer an event has; the beginning of a part counts as some."""
    if isinstance(event, PartStartEvent):
        texts = (getattr(event.part, name, None) for name in ("content", "args"))
    elif isinstance(event, PartDeltaEvent):
        texts = (getattr(event.delta, name, None) for name in ("content_delta", "args_delta"))
    else:
        return 0
    return _PART_CHARS * isinstance(event, PartStartEvent) + sum(len(text) for text in texts if isinstance(text, str))


def _parse_arguments(written: str | dict[str, Any] | None) -> Any:
    if not isinstance(written, str):
        return written or {}
    try:
        return json.loads(written or "{}")
    except (ValueError, RecursionError):
        return written
