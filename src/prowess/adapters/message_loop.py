"""The loop of an agent over a provider's own client: ask the model, make its calls, stop where a person has to decide.

The steps of a run are written once, as a generator that does nothing itself. A plain and an asynchronous driver carry
them out, with or without streams, so that all ways to run behave alike.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable, iscoroutinefunction, signature
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.adapters.core import SkillsAdapter, aturn, turn
from prowess.adapters.message_types import (
    CallEvent,
    HostTool,
    ModelReply,
    PendingCall,
    ResultEvent,
    RunResult,
    TextEvent,
    to_plain,
)
from prowess.arguments import check_count, check_instance, check_text, raise_bad_argument
from prowess.errors import FetchError, SkillError, SourceError
from prowess.select.steps import run_awaitable
from prowess.tools.arguments import BadArgumentsError, parse_arguments
from prowess.tools.definitions import ToolResult

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping

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
_NOT_FOUND = 404
_RESERVED = {
    "input": "pass messages",
    "instructions": "pass system, which comes before the listing of skills",
    "stream": "call skills.stream",
}
"""Arguments of the client's methods that a run sets itself, and what to do instead."""


class _Calls(NamedTuple):
    """A step: make these calls, and send their results back."""

    calls: tuple[ModelCall, ...]


class _RunArguments(NamedTuple):
    """The arguments of ``run``, in their order."""

    model: str
    messages: Iterable[Any]
    max_turns: int
    conversation: str | None
    saved: str
    system: str
    tools: Iterable[HostTool]
    decisions: Mapping[str, bool]
    options: dict[str, Any]


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
    task: ChildTask | None = None
    """The skill that this run carries out as a child agent."""
    usage: list[Usage] = field(default_factory=list)
    text: str = ""

    # -- the steps of a run ------------------------------------------------------------------------------------------

    def _list_steps(self) -> Generator[_Calls | None, Any, RunResult]:
        """Yield what has to be done: calls to make, or ``None`` for a request to the model; return the result."""
        calls = self._find_waiting_calls()
        turns = 0
        while True:
            if calls:
                results = yield _Calls(calls)
                pending = self._take_results(calls, results)
                if pending:
                    return self._make_result("pending", pending)
            if turns == self.max_turns:
                return self._make_result("max_turns")
            reply: ModelReply = yield None
            turns += 1
            calls = self._take_reply(reply)
            if reply.ending in ("length", "refusal"):
                return self._make_result("refusal" if reply.ending == "refusal" else "length")
            if not calls and reply.ending == "done":
                return self._make_result("done")

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
                waiting.append(PendingCall(call.id, call.name, call.arguments, result.pending))
        if done:
            self.messages = self.form.add_results(self.messages, done)
        return tuple(waiting)

    def _make_result(self, stop: StopReason, pending: tuple[PendingCall, ...] = ()) -> RunResult:
        saved = "" if self.task else self.conversation.save()
        return RunResult(self.text, self.messages, stop, pending, tuple(self.usage), saved)

    def _make_request(self, offer: Turn) -> Message:
        prompt = self.task.system if self.task else offer.prompt
        tools = [*offer.tools, *(tool.definition for tool in self.tools.values())]
        request = self.form.make_request(self.messages, self.system, prompt, tools, is_stream=self.is_stream)
        chosen = {**request, **self.options, "model": self.model}
        return {key: value for key, value in chosen.items() if value is not None}

    # -- plain code --------------------------------------------------------------------------------------------------

    def iterate(self, client: AnyClient) -> Iterator[RunEvent]:
        """Yield what happens in a run with a plain client, and at last the result."""
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

    def _ask(self, client: AnyClient) -> Generator[RunEvent, None, ModelReply]:
        request = self._make_request(turn(self.conversation, self.form.find_query(self.messages)))
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
            results.append(self._make_call(client, call))
            yield ResultEvent(call, results[-1])
        return results

    def _make_call(self, client: AnyClient, call: ModelCall) -> ToolResult:
        tool = self.tools.get(call.name)
        if tool is None:
            decision = self.decisions.get(call.id)
            run_child = partial(self._run_child, client)
            return self.conversation.call(
                call.name, call.arguments, call_id=call.id, decision=decision, run_child=run_child
            )
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
            return _read_answer(list(child.iterate(client))[-1])
        except Exception as error:
            if not self._is_unknown_model(child, error):
                raise
            return _read_answer(list(replace(child, model=self.model).iterate(client))[-1])
        finally:
            self._count_child(child)

    # -- asynchronous code -------------------------------------------------------------------------------------------

    async def aiterate(self, client: AnyClient) -> AsyncGenerator[RunEvent, None]:
        """Yield what happens in a run with an asynchronous client, and at last the result."""
        steps = self._list_steps()
        step = next(steps)
        while True:
            done: Any = None
            if step is None:
                # Closed at once when the caller leaves its loop: the request must not go on until garbage is collected.
                async with aclosing(self._aask(client)) as events:
                    async for event in events:
                        if isinstance(event, ModelReply):
                            done = event
                        else:
                            yield event
            else:
                for call in step.calls:
                    yield CallEvent(call)
                done = await self._amake_calls(client, step.calls)
                for call, result in zip(step.calls, done, strict=True):
                    yield ResultEvent(call, result)
            try:
                step = steps.send(done)
            except StopIteration as end:
                yield end.value
                return

    async def _aask(self, client: AnyClient) -> AsyncGenerator[RunEvent | ModelReply, None]:
        request = self._make_request(await aturn(self.conversation, self.form.find_query(self.messages)))
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

    async def _amake_calls(self, client: AnyClient, calls: tuple[ModelCall, ...]) -> list[ToolResult]:
        """Return the results of calls, which are made beside each other where each of their tools may."""
        if len(calls) == 1:
            return [await self._amake_call(client, calls[0])]
        from asyncio import gather  # noqa: PLC0415 - it takes long to import, and only asynchronous hosts need it

        definitions = (*self.conversation.toolset.possible_tools(), *(tool.definition for tool in self.tools.values()))
        alone = {definition.name for definition in definitions if not definition.parallel}
        if any(call.name in alone for call in calls):
            return [await self._amake_call(client, call) for call in calls]
        return list(await gather(*(self._amake_call(client, call) for call in calls)))

    async def _amake_call(self, client: AnyClient, call: ModelCall) -> ToolResult:
        tool = self.tools.get(call.name)
        if tool is None:
            decision = self.decisions.get(call.id)
            run_child = partial(self._arun_child, client)
            return await self.conversation.acall(
                call.name, call.arguments, call_id=call.id, decision=decision, run_child=run_child
            )
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
            return _read_answer([event async for event in child.aiterate(client)][-1])
        except Exception as error:
            if not self._is_unknown_model(child, error):
                raise
            again = replace(child, model=self.model)
            return _read_answer([event async for event in again.aiterate(client)][-1])
        finally:
            self._count_child(child)

    # -- the host's tools --------------------------------------------------------------------------------------------

    def _read_arguments(self, tool: HostTool, call: ModelCall) -> dict[str, Any] | ToolResult:
        """Return the arguments of a call of a host's tool, or the result that says why it may not be made."""
        refusal = self.conversation.explain_refusal(call.name, call.arguments)
        if self.task is not None:
            refusal = self.task.explain_refusal(call.name, call.arguments) or refusal
        if refusal:
            return ToolResult(refusal, is_error=True)
        try:
            arguments = parse_arguments(call.arguments)
            with suppress(ValueError):  # Python does not know the parameters of each function that is built in
                signature(tool.function).bind(**arguments)
        except (BadArgumentsError, TypeError) as error:
            return ToolResult(f"{call.name}: {error}", is_error=True)
        return arguments

    def _describe_failure(self, tool: HostTool, error: Exception) -> ToolResult:
        """Return the result of a call that failed; only the host learns what its own code raised."""
        if isinstance(error, SkillError):
            return ToolResult(f"{tool.name}: {error.message}", is_error=True)
        self.conversation.session.report_host_error(f"tool {tool.name}", error)
        return ToolResult(f"{tool.name} failed: the host could not run it", is_error=True)

    # -- child agents ------------------------------------------------------------------------------------------------

    def _open_child(self, task: ChildTask) -> AgentRun:
        """Return the run of a child agent: the skill's model, and the tools that the skill leaves it."""
        tools = {name: tool for name, tool in self.tools.items() if task.may_use(name)}
        messages = [{"role": "user", "content": task.message}]
        return replace(
            self,
            conversation=task.conversation,
            model=task.model or self.model,
            messages=messages,
            system="",
            tools=tools,
            decisions={},
            task=task,
            usage=[],
            text="",
        )

    def _is_unknown_model(self, child: AgentRun, error: Exception) -> bool:
        """Return whether the provider does not have the model that the skill of a child names."""
        return child.model != self.model and getattr(error, "status_code", None) == _NOT_FOUND

    def _count_child(self, child: AgentRun) -> None:
        skill = child.task.prepared.skill_name if child.task else ""
        self.usage += [usage._replace(skill=skill) for usage in child.usage]


class RunStream:
    """The events of a run as they happen: ``for`` with a plain client, ``async for`` with an asynchronous one.

    The last is the ``RunResult``. The run begins with the loop, and ends when the loop is left.
    """

    def __init__(self, open_run: Callable[[], AgentRun], client: AnyClient) -> None:
        self._open_run = open_run
        self._client = client

    def __iter__(self) -> Iterator[RunEvent]:
        """Run with a plain client."""
        return self._open_run().iterate(self._client)

    async def __aiter__(self) -> AsyncIterator[RunEvent]:
        """Run with an asynchronous client."""
        from asyncio import to_thread  # noqa: PLC0415 - it takes long to import, and only asynchronous hosts need it

        # In a thread: a conversation that begins reads files.
        run = await to_thread(self._open_run)
        async with aclosing(run.aiterate(self._client)) as events:
            async for event in events:
                yield event


class MessageSkills(SkillsAdapter, ABC):
    """Skills for a provider's own client: ``run``, ``arun`` and ``stream`` are the whole loop of an agent."""

    @abstractmethod
    def _pick_format(self, options: dict[str, Any]) -> MessageFormat:
        """Return the API to speak; options that are not for the client are taken out."""

    def run(
        self,
        client: AnyClient,
        *,
        model: str,
        messages: Iterable[Any],
        max_turns: int = 20,
        conversation: str | None = None,
        saved: str = "",
        system: str = "",
        tools: Iterable[HostTool] = (),
        decisions: Mapping[str, bool] | None = None,
        **options: Any,
    ) -> RunResult:
        """Run the agent until the model is done, a person has to decide, or it had its turns; return the result.

        ``messages``: in the shape of the provider; they are not changed. ``max_turns``: the most requests to the model;
        each child agent has as many. ``conversation``: the key of the conversation; ``None``: the run is a conversation
        of its own. ``saved``: what ``RunResult.saved`` was. ``system``: the text before the skills. ``tools``: the
        host's own. ``decisions``: what a person decided, by the id of the call. All other arguments go to the client.
        The client's errors are raised as they are, and ``SourceError`` for mistakes in the arguments.
        """
        asked = _RunArguments(model, messages, max_turns, conversation, saved, system, tools, decisions or {}, options)
        return _get_result(list(self._open_run(asked, is_stream=False).iterate(client)))

    async def arun(
        self,
        client: AnyClient,
        *,
        model: str,
        messages: Iterable[Any],
        max_turns: int = 20,
        conversation: str | None = None,
        saved: str = "",
        system: str = "",
        tools: Iterable[HostTool] = (),
        decisions: Mapping[str, bool] | None = None,
        **options: Any,
    ) -> RunResult:
        """Do what ``run`` does, with an asynchronous client; cancelling it ends its calls and child agents as well."""
        asked = _RunArguments(model, messages, max_turns, conversation, saved, system, tools, decisions or {}, options)
        events = RunStream(partial(self._open_run, asked, is_stream=False), client)
        return _get_result([event async for event in events])

    def stream(
        self,
        client: AnyClient,
        *,
        model: str,
        messages: Iterable[Any],
        max_turns: int = 20,
        conversation: str | None = None,
        saved: str = "",
        system: str = "",
        tools: Iterable[HostTool] = (),
        decisions: Mapping[str, bool] | None = None,
        **options: Any,
    ) -> RunStream:
        """Return the events of a run as they happen, with the arguments of ``run``; the last is the ``RunResult``.

        Read them with ``for`` when the client is plain, with ``async for`` when it is asynchronous.
        """
        asked = _RunArguments(model, messages, max_turns, conversation, saved, system, tools, decisions or {}, options)
        return RunStream(partial(self._open_run, asked, is_stream=True), client)

    def _open_run(self, asked: _RunArguments, *, is_stream: bool) -> AgentRun:
        """Return a run that has not begun; raises ``SourceError`` for mistakes in the arguments."""
        _check_arguments(asked)
        options = dict(asked.options)
        form = self._pick_format(options)
        conversation = self._open_conversation(asked.conversation, asked.saved)
        return AgentRun(
            form,
            conversation,
            asked.model,
            _collect_messages(asked.messages),
            asked.system,
            _collect_tools(asked.tools, conversation),
            options,
            asked.max_turns,
            is_stream,
            asked.decisions,
        )

    def _open_conversation(self, key: str | None, saved: str) -> Conversation:
        if key is not None:
            return self.conversations.open(key, saved)
        return self.conversations.restore("", saved) if saved else self.conversations.begin()


def _check_arguments(asked: _RunArguments) -> None:
    """Raise ``SourceError`` for arguments that no run can have."""
    check_text(asked.model, "model")
    check_text(asked.system, "system")
    check_count(asked.max_turns, "max_turns")
    if not asked.max_turns:
        raise SourceError("max_turns is at least 1: each turn is one request to the model")
    if isinstance(asked.messages, (str, dict)):
        remedy = 'pass [{"role": "user", "content": …}]'
        raise_bad_argument("messages", "is a list of messages", asked.messages, remedy)
    for name in asked.options.keys() & _RESERVED.keys():
        raise SourceError(f"a run sets {name} itself: {_RESERVED[name]}")


def _collect_messages(messages: Iterable[Any]) -> list[Message]:
    """Return a copy of the messages as plain JSON types; raises ``SourceError`` for one that is no mapping."""
    collected = [to_plain(message) for message in messages]
    for message in collected:
        check_instance(message, "a message", dict, remedy='pass {"role": "user", "content": …}')
    return collected


def _collect_tools(tools: Iterable[HostTool], conversation: Conversation) -> dict[str, HostTool]:
    """Return the host's tools by name; raises ``SourceError`` for a name that is taken, and for anything else."""
    collected: dict[str, HostTool] = {}
    given = tuple(tools)
    taken = {tool.name for tool in conversation.toolset.possible_tools()} if given else set()
    for tool in given:
        check_instance(tool, "tools", HostTool, remedy="pass HostTool(name, description, parameters, function)")
        if tool.name in taken or tool.name in collected:
            raise SourceError(f"two tools are named {tool.name!r}: give yours another name")
        collected[tool.name] = tool
    return collected


async def _await_function(tool: HostTool, arguments: dict[str, Any]) -> object:
    """Return what a host's function gives; a plain one runs in a thread, so that it does not hold up the loop."""
    from asyncio import to_thread  # noqa: PLC0415 - it takes long to import, and only asynchronous hosts need it

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
    ended = _get_result([result])
    if ended.stop == "max_turns":
        raise SkillError("it had no answer after all of its turns", code="fork-failed")
    if ended.stop == "refusal" or not ended.text:
        raise SkillError("its model gave no answer", code="fork-failed")
    return ended.text


def _get_result(events: list[RunEvent]) -> RunResult:
    """Return the result, which is the last event of a run."""
    result = events[-1]
    if not isinstance(result, RunResult):  # pragma: no cover - a run ends with its result, or raises
        raise TypeError(type(result))
    return result


def _close(answer: Any) -> None:
    close = getattr(answer, "close", None)
    if close is not None:  # otherwise Python warns of a coroutine that was never awaited
        close()
