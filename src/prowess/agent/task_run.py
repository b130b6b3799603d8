"""One run of the agent: a task, a model, the skills of a catalogue, and a result that says what the model did."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
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
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import infer_model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from prowess.adapters.pydantic_ai import Skills
from prowess.agent.approval import ToolGate
from prowess.agent.model_failures import explain_failure, is_client_error
from prowess.agent.own_tools import OWN_TOOLS, OwnToolset
from prowess.agent.run_report import RunReport
from prowess.agent.task_result import TaskResult, TurnTokens
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
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRun

    from prowess.agent.approval import Person
    from prowess.agent.task_result import OnAgentEvent, TaskStatus
    from prowess.agent.transcript import EarlierRun, Transcript
    from prowess.conversation.acting.sandbox import Kind
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
    run = _TaskRun(catalog, model, options, earlier, RunReport(on_event, transcript, options.limits))
    async with model:  # its connections are closed at the end
        return await run.run(task)


class _TaskRun:
    """One run: the agent of the framework, from its making to the result."""

    def __init__(
        self, catalog: Catalog | Live, model: Model, options: TaskOptions, earlier: EarlierRun | None, report: RunReport
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
        return Agent(
            self._model,
            instructions=INSTRUCTIONS,
            # Each turn repeats all that was said before: providers that can are asked to keep it.
            model_settings=ModelSettings(cache=True),
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
