"""The loop of an agent over a provider's own client: ask the model, make its calls, stop where a person has to decide.

The steps of a run are written once, as a generator that does nothing itself. A plain and an asynchronous driver carry
them out, with or without streams, so that all ways to run behave alike.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable, iscoroutinefunction, signature
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.adapters.core import aturn, turn
from prowess.adapters.message_types import (
    CallEvent,
    ChildEvent,
    HostTool,
    ModelReply,
    PartialRun,
    PendingCall,
    ResultEvent,
    RunResult,
    TextEvent,
    explain_mistakes,
    find_query,
    name_provider_tool,
    to_plain,
)
from prowess.errors import FetchError, NotTrustedError, SkillError, SourceError
from prowess.text.hidden_characters import to_one_line
from prowess.thread_work import run_awaitable
from prowess.tools.definitions import BadArgumentsError, ToolResult, parse_arguments, sanitize_error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping

    from prowess.adapters.core import ChildTask, Conversation, Turn
    from prowess.adapters.message_types import (
        Message,
        MessageFormat,
        ModelCall,
        RunEvent,
        StopReason,
        Usage,
    )

    AnyClient = Any  # of Anthropic or OpenAI, of a cloud, or compatible: it only needs the right methods

_NOT_MADE = "The reply ended before this call was whole, so it was not made. Make it again, with less text before it."
_LEFT_OPEN = "This call was not made: the run that it belongs to is over. Make it again if it is still needed."
_INTERRUPTED = "This call was interrupted: it may have done its work, or a part of it. Look before you make it again."
_NOT_FOUND = 404


class _Calls(NamedTuple):
    """A step: make these calls, and send their results back."""

    calls: tuple[ModelCall, ...]


@dataclass
class AgentRun:
    """One run of the agent: its messages so far, and what it may use."""

    form: MessageFormat
    conversation: Conversation
    model: str
    messages: list[Message]
    system: str
    tools: dict[str, HostTool]
    options: dict[str, Any]
    max_turns: int
    is_stream: bool = False
    decisions: Mapping[str, bool] = field(default_factory=dict)
    provider_tools: tuple[Mapping[str, Any], ...] = ()
    """Tools that the provider runs, in its own shape."""
    task: ChildTask | None = None
    """The skill that this run carries out as a child agent."""
    usage: list[Usage] = field(default_factory=list)
    text: str = ""
    report_child: Callable[[ChildEvent], object] | None = None
    """Takes what happens in child agents, for the stream of the run."""
    results: dict[int, tuple[ModelCall, ToolResult]] = field(default_factory=dict)
    """The calls of the present step that have begun, each with its result so far."""

    # -- the steps of a run ------------------------------------------------------------------------------------------

    def _list_steps(self) -> Generator[_Calls | None, Any, RunResult]:
        """Yield what has to be done: calls to make, or ``None`` for a request to the model; return the result."""
        waiting = self._find_waiting_calls()
        refused = tuple(call for call in waiting if self._find_decision(call) is False)
        if refused:  # before any other call, so that a yes to an equal one does not count
            self._take_results(refused, (yield _Calls(refused)))
        calls = tuple(call for call in waiting if call not in refused)
        turns = 0
        while True:
            if calls:
                results = yield _Calls(calls)
                pending = self._take_results(calls, results)
                if pending:
                    return self._make_result("pending", pending)
            # People decided about the calls that waited. A new call may have the id of one of them.
            self.decisions = {}
            if turns == self.max_turns:
                return self._make_result("max_turns")
            reply: ModelReply = yield None
            turns += 1
            calls = self._take_reply(reply)
            if reply.ending in ("length", "refusal"):
                return self._make_result("refusal" if reply.ending == "refusal" else "length")
            if not calls and reply.ending == "done":
                return self._make_result("done")

    def check_decisions(self) -> None:
        """Raise ``NotTrustedError`` (code ``no-question``) for a decision that is about no call which waits for it."""
        asked = {self.conversation.name_question(call.id): call.id for call in self.form.find_open_calls(self.messages)}
        for question, decision in self.decisions.items():
            if question not in asked or not self.conversation.has_question(asked[question], decision=decision):
                message = f"nobody waits for a decision about {question!r} in these messages, so nothing was done"
                raise NotTrustedError(message, code="no-question")

    def _find_waiting_calls(self) -> tuple[ModelCall, ...]:
        """Return the calls of an earlier run that may have waited for a person."""
        calls = self.form.find_open_calls(self.messages)
        # No run leaves a call of a host's tool open. Whoever wrote this one into the messages, it is not made.
        foreign = [(call, ToolResult(_LEFT_OPEN, is_error=True)) for call in calls if call.name in self.tools]
        if foreign:
            self.messages = self.form.add_results(self.messages, foreign)
        return tuple(call for call in calls if call.name not in self.tools)

    def _take_reply(self, reply: ModelReply) -> tuple[ModelCall, ...]:
        """Add a reply to the messages; return its calls."""
        self.messages = [*self.messages, *reply.messages]
        self.usage.append(reply.usage)
        self.text = reply.text
        if reply.ending not in ("length", "refusal"):
            return reply.calls
        if reply.calls and reply.messages:
            # A call may be half written. It is answered all the same: providers refuse messages with open calls.
            answer = ToolResult(_NOT_MADE, is_error=True)
            self.messages = self.form.add_results(self.messages, [(call, answer) for call in reply.calls])
        return ()

    def _take_results(self, calls: tuple[ModelCall, ...], results: list[ToolResult]) -> tuple[PendingCall, ...]:
        """Add the results to the messages; return the calls that wait for a person."""
        done, waiting = [], []
        for call, result in zip(calls, results, strict=True):
            # A child has nobody to ask: its model reads that nothing was done.
            if result.pending is None or self.task is not None:
                done.append((call, result))
            else:
                question = self.conversation.name_question(call.id)
                waiting.append(PendingCall(question, call.name, call.arguments, result.pending))
        if done:
            self.messages = self.form.add_results(self.messages, done)
        self.results = {}
        return tuple(waiting)

    def _make_result(self, stop: StopReason, pending: tuple[PendingCall, ...] = ()) -> RunResult:
        saved = "" if self.task else self.conversation.save()
        return RunResult(self.text, self.messages, stop, pending, tuple(self.usage), saved)

    def _make_partial(self) -> PartialRun:
        """Return what the run has so far; the calls of the present step that have begun have a result in it."""
        # Written, not saved: a retry that passes the last save goes on in this conversation, which knows what was done.
        saved, messages = self.conversation.write(), self.messages
        done = [(call, result) for call, result in self.results.values() if result.pending is None]
        if done:
            messages = self.form.add_results(messages, done)
        return PartialRun(self.text, messages, tuple(self.usage), saved)

    def _keep_partial(self, error: BaseException) -> None:
        """Give an error that ends the run what there is of the run; a child's work is part of its parent's run."""
        if self.task is None:
            with suppress(AttributeError):  # a class of errors may take no attributes
                error.partial = self._make_partial()  # type: ignore[attr-defined]

    def _make_request(self, offer: Turn) -> Message:
        prompt = self.task.system if self.task else offer.prompt
        lost = self.conversation.find_lost(lambda: json.dumps(self.messages))
        prompt = "\n\n".join(filter(None, (prompt, lost)))
        tools = [*offer.tools, *(tool.definition for tool in self.tools.values())]
        request = self.form.make_request(self.messages, self.system, prompt, tools, is_stream=self.is_stream)
        # Nobody can judge the calls of these: such a tool is left out while it is not allowed as a whole.
        judge = self.task or self.conversation
        given = [dict(tool) for tool in self.provider_tools if not judge.explain_refusal(name_provider_tool(tool))]
        request |= {"tools": [*request.get("tools", ()), *given]} if given else {}
        chosen = {**request, **self.options, "model": self.model}
        return {key: value for key, value in chosen.items() if value is not None}

    def _list_tool_names(self) -> tuple[str, ...]:
        return *self.tools, *map(name_provider_tool, self.provider_tools)

    def _describe_call(self, call: ModelCall) -> dict[str, Any]:
        """Return what the conversation has to know of a call of a skill tool; nobody is asked in a child."""
        return {"call_id": call.id, "decision": self._find_decision(call), "may_ask": self.task is None}

    def _find_decision(self, call: ModelCall) -> bool | None:
        """Return what a person decided about a call that waited; ``None``: nothing, or about what it ran before."""
        # A decision is about what was shown: one that is passed twice must not count for files that changed meanwhile.
        decision = self.decisions.get(self.conversation.name_question(call.id))
        # Of two calls with one id, as some providers make them, the first has the decision.
        if decision is None or not self.conversation.has_question(call.id, decision=decision):
            return None
        return decision

    # -- plain code --------------------------------------------------------------------------------------------------

    def iterate(self, client: AnyClient) -> Iterator[RunEvent]:
        """Yield what happens in a run with a plain client, and at last the result."""
        try:
            yield from self._iterate(client)
        except GeneratorExit:  # somebody left the loop
            raise
        except BaseException as error:
            self._keep_partial(error)
            raise

    def _iterate(self, client: AnyClient) -> Iterator[RunEvent]:
        steps = self._list_steps()
        step = next(steps)
        while True:
            if step is None:
                done: Any = yield from self._ask(client)
            else:
                done = yield from self._make_calls(client, step.calls)
            try:
                step = steps.send(done)
            except StopIteration as end:
                yield end.value
                return
            if step is None:  # a turn has ended, and another one follows
                yield self._make_partial()

    def _ask(self, client: AnyClient) -> Generator[RunEvent, None, ModelReply]:
        request = self._make_request(turn(self.conversation, find_query(self.messages), self._list_tool_names()))
        answer = self.form.send_request(client, request)
        if isawaitable(answer):
            _close(answer)
            raise SourceError("this client is asynchronous: use 'await skills.arun(…)' or 'async for'")
        if not self.is_stream:
            return self.form.read_reply(to_plain(answer))
        reader = self.form.open_reader()
        with answer:
            for event in answer:
                text = reader.read_event(to_plain(event))
                if text:
                    yield TextEvent(text)
        return self._read_whole(reader.finish_reply())

    def _read_whole(self, response: Message | None) -> ModelReply:
        if response is None:
            raise FetchError("the provider ended its stream before the answer was whole")
        return self.form.read_reply(response)

    def _make_calls(
        self, client: AnyClient, calls: tuple[ModelCall, ...]
    ) -> Generator[RunEvent, None, list[ToolResult]]:
        results = []
        for call in calls:
            yield CallEvent(call)
            events: list[ChildEvent] = []
            self.report_child = events.append
            results.append(self._make_call(client, call))
            yield from events  # plain code: all at once, when the child has ended
            yield ResultEvent(call, results[-1])
        return results

    def _make_call(self, client: AnyClient, call: ModelCall) -> ToolResult:
        self._begin_call(call)
        result = self._answer_call(client, call)
        self.results[id(call)] = (call, result)
        return result

    def _begin_call(self, call: ModelCall) -> None:
        self.results[id(call)] = (call, ToolResult(_INTERRUPTED, is_error=True))

    def _answer_call(self, client: AnyClient, call: ModelCall) -> ToolResult:
        tool = self.tools.get(call.name)
        if tool is None and (unknown := self._explain_unknown(call)):
            return unknown
        if tool is None:
            run_child = partial(self._run_child, client)
            how = self._describe_call(call)
            return self.conversation.call(call.name, call.arguments, run_child=run_child, **how)
        arguments = self._read_arguments(tool, call)
        if isinstance(arguments, ToolResult):
            return arguments
        try:
            made = tool.function(**arguments)
            return _as_result(run_awaitable(made) if isawaitable(made) else made)
        except Exception as error:  # noqa: BLE001 - whatever the host's tool does, the conversation goes on
            return self._describe_failure(tool, error)

    def _run_child(self, client: AnyClient, task: ChildTask) -> str:
        child = self._open_child(task)
        try:
            return _read_answer(list(map(self._note_child(task), child.iterate(client)))[-1])
        except Exception as error:
            if not self._is_unknown_model(child, error):
                raise
            again = replace(child, model=self.model)
            return _read_answer(list(map(self._note_child(task), again.iterate(client)))[-1])
        finally:
            self._count_child(child)

    # -- asynchronous code -------------------------------------------------------------------------------------------

    async def aiterate(self, client: AnyClient) -> AsyncGenerator[RunEvent, None]:
        """Yield what happens in a run with an asynchronous client, and at last the result."""
        # Each is closed at once when the caller leaves its loop: a request must not go on until garbage is collected.
        async with aclosing(self._aiterate(client)) as events:
            try:
                async for event in events:
                    yield event
            except GeneratorExit:  # somebody left the loop
                raise
            except BaseException as error:
                self._keep_partial(error)
                raise

    async def _aiterate(self, client: AnyClient) -> AsyncGenerator[RunEvent, None]:
        steps = self._list_steps()
        step = next(steps)
        while True:
            done: Any = None
            parts = self._aask(client) if step is None else self._afollow_calls(client, step.calls)
            async with aclosing(parts) as events:
                async for event in events:
                    if isinstance(event, (ModelReply, list)):
                        done = event
                    else:
                        yield event
            try:
                step = steps.send(done)
            except StopIteration as end:
                yield end.value
                return
            if step is None:  # a turn has ended, and another one follows
                yield self._make_partial()

    async def _aask(self, client: AnyClient) -> AsyncGenerator[RunEvent | ModelReply, None]:
        names = self._list_tool_names()
        request = self._make_request(await aturn(self.conversation, find_query(self.messages), names))
        answer = self.form.send_request(client, request)
        if not isawaitable(answer):
            raise SourceError("this client is not asynchronous: use 'skills.run(…)' or a plain 'for'")
        answer = await answer
        if not self.is_stream:
            yield self.form.read_reply(to_plain(answer))
            return
        reader = self.form.open_reader()
        async with answer:
            async for event in answer:
                text = reader.read_event(to_plain(event))
                if text:
                    yield TextEvent(text)
        yield self._read_whole(reader.finish_reply())

    async def _afollow_calls(
        self, client: AnyClient, calls: tuple[ModelCall, ...]
    ) -> AsyncGenerator[RunEvent | list[ToolResult], None]:
        """Yield what happens while calls are made, in child agents too, and at last the results of the calls."""
        from asyncio import Queue, create_task, wait

        for call in calls:
            yield CallEvent(call)
        if self.is_stream:
            events: Queue[ChildEvent | None] = Queue()
            self.report_child = events.put_nowait
            work = create_task(self._amake_calls(client, calls))
            work.add_done_callback(lambda _: events.put_nowait(None))
            try:
                while (event := await events.get()) is not None:
                    yield event
            finally:
                if not work.done():  # the run was cancelled, or its caller has left the loop
                    work.cancel()
                    await wait([work])
            results = work.result()
        else:
            results = await self._amake_calls(client, calls)
        for call, result in zip(calls, results, strict=True):
            yield ResultEvent(call, result)
        yield results

    async def _amake_calls(self, client: AnyClient, calls: tuple[ModelCall, ...]) -> list[ToolResult]:
        """Return the results of calls, which are made beside each other where each of their tools may."""
        if len(calls) == 1:
            return [await self._amake_call(client, calls[0])]
        from asyncio import gather

        definitions = (*self.conversation.toolset.possible_tools(), *(tool.definition for tool in self.tools.values()))
        alone = {definition.name for definition in definitions if not definition.parallel}
        if any(call.name in alone for call in calls):
            return [await self._amake_call(client, call) for call in calls]
        return list(await gather(*(self._amake_call(client, call) for call in calls)))

    async def _amake_call(self, client: AnyClient, call: ModelCall) -> ToolResult:
        self._begin_call(call)
        result = await self._aanswer_call(client, call)
        self.results[id(call)] = (call, result)
        return result

    async def _aanswer_call(self, client: AnyClient, call: ModelCall) -> ToolResult:
        tool = self.tools.get(call.name)
        if tool is None and (unknown := self._explain_unknown(call)):
            return unknown
        if tool is None:
            run_child = partial(self._arun_child, client)
            how = self._describe_call(call)
            return await self.conversation.acall(call.name, call.arguments, run_child=run_child, **how)
        arguments = self._read_arguments(tool, call)
        if isinstance(arguments, ToolResult):
            return arguments
        try:
            return _as_result(await _await_function(tool, arguments))
        except Exception as error:  # noqa: BLE001 - whatever the host's tool does, the conversation goes on
            return self._describe_failure(tool, error)

    async def _arun_child(self, client: AnyClient, task: ChildTask) -> str:
        child = self._open_child(task)
        try:
            note = self._note_child(task)
            return _read_answer([note(event) async for event in child.aiterate(client)][-1])
        except Exception as error:
            if not self._is_unknown_model(child, error):
                raise
            again = replace(child, model=self.model)
            return _read_answer([note(event) async for event in again.aiterate(client)][-1])
        finally:
            self._count_child(child)

    # -- the host's tools --------------------------------------------------------------------------------------------

    def _explain_unknown(self, call: ModelCall) -> ToolResult | None:
        """Return the answer to a call of no tool, with the names of all tools; ``None`` for a skill tool."""
        names = [tool.name for tool in self.conversation.toolset.possible_tools()]
        if call.name in names or not self.tools:  # without tools of the host, the toolset's own answer has all of them
            return None
        message = f"unknown tool: {to_one_line(call.name[:128])}; known: {', '.join((*names, *self.tools))}"
        return sanitize_error(ToolResult(message, is_error=True, data={"reason": "unknown-tool"}))

    def _read_arguments(self, tool: HostTool, call: ModelCall) -> dict[str, Any] | ToolResult:
        """Return the arguments of a call of a host's tool, or the result that says why it may not be made."""
        refusal = (self.task or self.conversation).explain_refusal(call.name, call.arguments)
        if refusal:
            return ToolResult(refusal, is_error=True)
        try:
            arguments = parse_arguments(call.arguments)
            if mistakes := explain_mistakes(arguments, tool.parameters):
                return ToolResult(f"{call.name}: {mistakes}. Correct the arguments and call it again.", is_error=True)
            with suppress(ValueError):  # Python does not know the parameters of each function that is built in
                signature(tool.function).bind(**arguments)
        except (BadArgumentsError, TypeError) as error:
            return ToolResult(f"{call.name}: {error}", is_error=True)
        return arguments

    def _describe_failure(self, tool: HostTool, error: Exception) -> ToolResult:
        """Return the result of a call that failed; only the host learns what its own code raised."""
        if isinstance(error, SkillError):
            return ToolResult(f"{tool.name}: {error.message}", is_error=True)
        self.conversation.session.events.report_host_error(f"tool {tool.name}", error)
        return ToolResult(f"{tool.name} failed: the host could not run it", is_error=True)

    # -- child agents ------------------------------------------------------------------------------------------------

    def _note_child(self, task: ChildTask) -> Callable[[RunEvent], RunEvent]:
        """Return what passes the events of a child on to the stream of this run, each as it is."""

        def note(event: RunEvent) -> RunEvent:
            if self.report_child is not None and isinstance(event, TextEvent | CallEvent | ResultEvent):
                self.report_child(ChildEvent(task.prepared.skill_name, event))
            return event

        return note

    def _open_child(self, task: ChildTask) -> AgentRun:
        """Return the run of a child agent: the skill's model, and the tools that the skill leaves it."""
        tools = {name: tool for name, tool in self.tools.items() if task.may_use(name)}
        provided = tuple(tool for tool in self.provider_tools if task.may_use(name_provider_tool(tool)))
        messages = [{"role": "user", "content": task.message}]
        return replace(
            self,
            conversation=task.conversation,
            model=task.model or self.model,
            messages=messages,
            system="",
            tools=tools,
            provider_tools=provided,
            decisions={},
            task=task,
            usage=[],
            text="",
            report_child=None,
            results={},
        )

    def _is_unknown_model(self, child: AgentRun, error: Exception) -> bool:
        """Return whether the provider does not have the model that the skill of a child names, which is logged then.

        A child whose model has answered is not run again: what it has done would be done twice.
        """
        is_unknown = child.model != self.model and getattr(error, "status_code", None) == _NOT_FOUND
        if not is_unknown or child.usage:
            return False
        if child.task is not None:
            child.task.report_missing_model(error)
        return True

    def _count_child(self, child: AgentRun) -> None:
        skill = child.task.prepared.skill_name if child.task else ""
        self.usage += [usage._replace(skill=skill) for usage in child.usage]


async def _await_function(tool: HostTool, arguments: dict[str, Any]) -> object:
    """Return what a host's function gives; a plain one runs in a thread, so that it does not hold up the loop."""
    from asyncio import to_thread

    if iscoroutinefunction(tool.function):
        return await tool.function(**arguments)
    made = await to_thread(partial(tool.function, **arguments))
    return await made if isinstance(made, Awaitable) else made


def _as_result(value: object) -> ToolResult:
    """Return what a host's function gave as the result of a call."""
    if isinstance(value, ToolResult):
        return value
    return ToolResult(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def _read_answer(result: RunEvent) -> str:
    """Return the text of a child's result; raises ``SkillError`` when it ended without one."""
    ended = get_result([result])
    if ended.stop == "max_turns":
        raise SkillError("it had no answer after all of its turns", code="fork-failed")
    if ended.stop == "refusal" or not ended.text:
        raise SkillError("its model gave no answer", code="fork-failed")
    return ended.text


def get_result(events: list[RunEvent]) -> RunResult:
    """Return the result, which is the last event of a run."""
    result = events[-1]
    if not isinstance(result, RunResult):  # pragma: no cover - a run ends with its result, or raises
        raise TypeError(type(result))
    return result


def _close(answer: Any) -> None:
    close = getattr(answer, "close", None)
    if close is not None:  # otherwise Python warns of a coroutine that was never awaited
        close()
