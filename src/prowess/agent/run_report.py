"""The report of a run of the agent: each event is recorded, passed to the listener, and written to the transcript."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)

from prowess.agent.api_keys import KeyFilter, hide_keys, hide_keys_in
from prowess.agent.task_result import AgentEvent, CallRecord, TurnTokens
from prowess.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Sequence

    from pydantic_ai.messages import AgentStreamEvent, ModelMessage, ModelResponse

    from prowess.agent.approval import DecidedBy, ToolRequest
    from prowess.agent.task_result import AgentEventKind, OnAgentEvent, TaskResult
    from prowess.agent.transcript import Transcript
    from prowess.conversation.events import Event
    from prowess.limits import Limits

_PART_CHARS = 100  # a call with no arguments takes memory too


@dataclass
class RunRecord:
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


class RunReport:
    """What happens in one run: a record of it, and an ``AgentEvent`` for the listener and the transcript.

    An exception of the listener or the transcript ends the run: the call that reports the event raises it. No event has
    a key of the environment that a server repeats, also if its parts come in several pieces of text.
    """

    def __init__(self, on_event: OnAgentEvent | None, transcript: Transcript | None, limits: Limits) -> None:
        self.record = RunRecord()
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
