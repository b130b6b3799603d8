"""``Skills`` for a provider's own client: the arguments of a run, and the ways to run it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.adapters.core import SkillsAdapter
from prowess.adapters.message_loop import AgentRun, get_result
from prowess.adapters.message_types import HostTool, name_provider_tool, to_plain
from prowess.arguments import check_count, check_flag, check_instance, check_text, raise_bad_argument
from prowess.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from prowess.adapters.core import Conversation
    from prowess.adapters.message_loop import AnyClient
    from prowess.adapters.message_types import Message, MessageFormat, RunEvent, RunResult

_RESERVED = {
    "input": "pass messages",
    "instructions": "pass system, which comes before the listing of skills",
    "stream": "call skills.stream",
}
"""Arguments of the client's methods that a run sets itself, and what to do instead."""


class _RunArguments(NamedTuple):
    """The arguments of ``run``, in their order."""

    model: str
    messages: Iterable[Any]
    max_turns: int
    conversation: str | None
    context: object
    saved: str
    system: str
    tools: Iterable[HostTool | Mapping[str, Any]]
    decisions: Mapping[str, bool]
    options: dict[str, Any]


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
        from asyncio import to_thread

        # In a thread: a conversation that begins reads files.
        run = await to_thread(self._open_run)
        async with aclosing(run.aiterate(self._client)) as events:
            async for event in events:
                yield event


class MessageSkills(SkillsAdapter, ABC):
    """Skills for a provider's own client: ``run``, ``arun`` and ``stream`` are the whole loop of an agent."""

    # Each of the three methods writes all parameters out, although they take the same ones: no type says "these
    # arguments, and any others for the client", and editors and type checkers must know what a run takes.

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
        context: object = None,
        saved: str = "",
        system: str = "",
        tools: Iterable[HostTool | Mapping[str, Any]] = (),
        decisions: Mapping[str, bool] | None = None,
        **options: Any,
    ) -> RunResult:
        """Run the agent until the model is done, a person has to decide, or it had its turns; return the result.

        ``messages``: in the shape of the provider; they are not changed. ``max_turns``: the most requests to the model;
        each child agent has as many. ``conversation``: the key of the conversation; ``None``: the run is a conversation
        of its own. ``context``: what the ``scope`` of these skills is to know of the user. ``saved``: what
        ``RunResult.saved`` was. ``system``: the text before the skills. ``tools``: the host's own, and dictionaries of
        tools that the provider runs. ``decisions``: what a person decided, by ``PendingCall.id``. All other arguments
        go to the client.
        The client's errors are raised as they are, and ``SourceError`` for mistakes in the arguments.
        """
        asked = _RunArguments(
            model, messages, max_turns, conversation, context, saved, system, tools, decisions or {}, options
        )
        return get_result(list(self._open_run(asked, is_stream=False).iterate(client)))

    async def arun(
        self,
        client: AnyClient,
        *,
        model: str,
        messages: Iterable[Any],
        max_turns: int = 20,
        conversation: str | None = None,
        context: object = None,
        saved: str = "",
        system: str = "",
        tools: Iterable[HostTool | Mapping[str, Any]] = (),
        decisions: Mapping[str, bool] | None = None,
        **options: Any,
    ) -> RunResult:
        """Do what ``run`` does, with an asynchronous client; cancelling it ends its calls and child agents as well."""
        asked = _RunArguments(
            model, messages, max_turns, conversation, context, saved, system, tools, decisions or {}, options
        )
        events = RunStream(partial(self._open_run, asked, is_stream=False), client)
        return get_result([event async for event in events])

    def stream(
        self,
        client: AnyClient,
        *,
        model: str,
        messages: Iterable[Any],
        max_turns: int = 20,
        conversation: str | None = None,
        context: object = None,
        saved: str = "",
        system: str = "",
        tools: Iterable[HostTool | Mapping[str, Any]] = (),
        decisions: Mapping[str, bool] | None = None,
        **options: Any,
    ) -> RunStream:
        """Return the events of a run as they happen, with the arguments of ``run``; the last is the ``RunResult``.

        Read them with ``for`` when the client is plain, with ``async for`` when it is asynchronous.
        """
        asked = _RunArguments(
            model, messages, max_turns, conversation, context, saved, system, tools, decisions or {}, options
        )
        return RunStream(partial(self._open_run, asked, is_stream=True), client)

    def _open_run(self, asked: _RunArguments, *, is_stream: bool) -> AgentRun:
        """Return a run that has not begun; raises ``SourceError`` for mistakes in the arguments."""
        _check_arguments(asked)
        options = dict(asked.options)
        form = self._pick_format(options)
        conversation = self.conversations.open(asked.conversation, asked.saved, context=asked.context)
        tools = tuple(asked.tools)
        provided = tuple(tool for tool in tools if isinstance(tool, Mapping) and name_provider_tool(tool))
        run = AgentRun(
            form,
            conversation,
            asked.model,
            _collect_messages(asked.messages),
            asked.system,
            _collect_tools((tool for tool in tools if tool not in provided), conversation),
            options,
            asked.max_turns,
            is_stream,
            asked.decisions,
            provided,
        )
        run.check_decisions()
        return run


def _check_arguments(asked: _RunArguments) -> None:
    """Raise ``SourceError`` for arguments that no run can have."""
    check_text(asked.model, "model")
    check_text(asked.system, "system")
    check_count(asked.max_turns, "max_turns")
    if not asked.max_turns:
        raise SourceError("max_turns must be at least 1: each turn is one request to the model")
    if isinstance(asked.messages, (str, dict)):
        remedy = 'pass [{"role": "user", "content": …}]'
        raise_bad_argument("messages", "must be a list of messages", asked.messages, remedy)
    for decision in asked.decisions.values():
        check_flag(decision, "a decision")
    for name in asked.options.keys() & _RESERVED.keys():
        raise SourceError(f"a run sets {name} itself: {_RESERVED[name]}")


def _collect_messages(messages: Iterable[Any]) -> list[Message]:
    """Return a copy of the messages as plain JSON types; raises ``SourceError`` for one that is not a mapping."""
    collected = [to_plain(message) for message in messages]
    for message in collected:
        check_instance(message, "a message", dict, remedy='pass {"role": "user", "content": …}')
    return collected


def _collect_tools(tools: Iterable[Any], conversation: Conversation) -> dict[str, HostTool]:
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
