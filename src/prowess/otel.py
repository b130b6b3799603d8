"""Telemetry with OpenTelemetry: spans for the events of a session, and for the tool calls of a model.

The names are those of the semantic conventions for generative AI: a call is a span ``execute_tool NAME`` with
``gen_ai.skill.name``, ``gen_ai.skill.description``, ``gen_ai.skill.source.uri`` and ``gen_ai.skill.resource.name``; the
conversation is ``gen_ai.conversation.id``. Names that the conventions do not have begin with ``prowess.``.
Instructions, files, arguments and results are in no span. This module needs the extra ``otel``, which installs the API
alone: when the host has set up no SDK, nothing is recorded.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from prowess.errors import SourceError
from prowess.hints import explain_extra
from prowess.text.escapes import escape_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from opentelemetry.trace import Span, Tracer, TracerProvider

    from prowess.conversation.events import Event, OnEvent
    from prowess.tools.definitions import ToolResult
    from prowess.tools.toolset import Toolset

_OPERATION = "gen_ai.operation.name"
_EXECUTE_TOOL = "execute_tool"
_SCRIPT_NAMES = {
    "script": "prowess.script",
    "status": "prowess.script.status",
    "sandbox": "prowess.script.sandbox",
    "limit": "prowess.script.limit",
}
_NANOSECONDS = 1_000_000_000
_MAX_NAME_CHARS = 128
_MAX_VALUE_CHARS = 4_096  # as long as a path may be


def trace_events(tracer_provider: TracerProvider | None = None) -> OnEvent:
    """Return a callback for ``Session(on_event=…)`` that makes a span of every event, as long as the event took.

    Each span is a child of the current span. When the current span is that of a tool call (``gen_ai.operation.name`` is
    ``execute_tool``), it gets the attributes of the skill as well, whoever began it. Raises ``SourceError`` (code
    ``missing-extra``) when OpenTelemetry is not installed.
    """
    tracer = _get_tracer(tracer_provider)
    from opentelemetry.trace import get_current_span

    def record(event: Event) -> None:
        _annotate_call(get_current_span(), event)
        # An event is reported when it is over, so its span is dated back by the time that it took.
        ended = int(event.time * _NANOSECONDS)
        began = ended - int((event.seconds or 0.0) * _NANOSECONDS)
        span = tracer.start_span(f"skill {event.kind}", start_time=began, attributes=_event_attributes(event))
        if event.decision == "refused":
            _mark_failure(span, str(event.detail.get("code", "refused")))
        elif event.kind == "ran" and (event.detail.get("status") or event.detail.get("limit")):
            _mark_failure(span, str(event.detail.get("limit") or "script-failed"))
        span.end(ended)

    return record


def trace_call(
    toolset: Toolset,
    name: str,
    arguments: Mapping[str, Any] | str | bytes | None = None,
    *,
    tracer_provider: TracerProvider | None = None,
) -> ToolResult:
    """Return what ``toolset.call(name, arguments)`` returns, and record it as a span ``execute_tool NAME``.

    Raises ``SourceError`` (code ``missing-extra``) when OpenTelemetry is not installed, and nothing else.
    """
    with _open_call_span(toolset, name, tracer_provider) as describe:
        return describe(toolset.call(name, arguments))


async def atrace_call(
    toolset: Toolset,
    name: str,
    arguments: Mapping[str, Any] | str | bytes | None = None,
    *,
    tracer_provider: TracerProvider | None = None,
) -> ToolResult:
    """Return what ``await toolset.acall(name, arguments)`` returns, and record it as a span ``execute_tool NAME``.

    Raises ``SourceError`` (code ``missing-extra``) when OpenTelemetry is not installed, and nothing else.
    """
    with _open_call_span(toolset, name, tracer_provider) as describe:
        return describe(await toolset.acall(name, arguments))


@contextmanager
def _open_call_span(
    toolset: Toolset, name: str, tracer_provider: TracerProvider | None
) -> Iterator[Callable[[ToolResult], ToolResult]]:
    """Open a span around a call; the yielded function describes the result in the span, and returns it."""
    # The name comes from a model: it may be of any length, and hold anything.
    shown = _shorten(str(name), _MAX_NAME_CHARS)
    attributes = {
        _OPERATION: _EXECUTE_TOOL,
        "gen_ai.tool.name": shown,
        "gen_ai.tool.type": "function",
        "gen_ai.conversation.id": toolset.session.id,
    }
    with _get_tracer(tracer_provider).start_as_current_span(f"{_EXECUTE_TOOL} {shown}", attributes=attributes) as span:
        yield partial(_describe_result, span, toolset)


def _get_tracer(tracer_provider: TracerProvider | None) -> Tracer:
    try:
        from opentelemetry.trace import get_tracer
    except ImportError:
        raise SourceError(f"OpenTelemetry is not installed: {explain_extra('otel')}", code="missing-extra") from None
    return get_tracer("prowess", tracer_provider=tracer_provider)


def _event_attributes(event: Event) -> dict[str, str]:
    """Return the attributes of an event's own span."""
    decision = {"prowess.decision": event.decision} if event.decision else {}
    session = {"gen_ai.conversation.id": event.session} if event.session else {}
    scope = {"prowess.scope": str(event.detail["scope"])} if "scope" in event.detail else {}
    names = _SCRIPT_NAMES.items() if event.kind == "ran" else ()
    ran = {name: _shorten(str(event.detail[key]), _MAX_VALUE_CHARS) for key, name in names if event.detail[key] != ""}
    return {**_skill_attributes(event), **session, "prowess.event.kind": event.kind, **decision, **scope, **ran}


def _skill_attributes(event: Event) -> dict[str, str]:
    return {key: _shorten(str(value), _MAX_VALUE_CHARS) for key, value in event.attributes().items()}


def _shorten(text: str, limit: int) -> str:
    """Return the beginning of a string on one line, without characters that could harm a terminal that shows spans."""
    return escape_line(text[:limit])[:limit]


def _annotate_call(span: Span, event: Event) -> None:
    """Give the span of a tool call the attributes of its skill.

    The span of a request, a job or anything else around the call stays as it is.
    """
    # The API has no way to read a span; the SDK's spans have attributes, and others count as no tool call.
    known = getattr(span, "attributes", None) or {}
    if known.get(_OPERATION) == _EXECUTE_TOOL:
        span.set_attributes(_skill_attributes(event))


def _describe_result(span: Span, toolset: Toolset, result: ToolResult) -> ToolResult:
    name = result.data.get("skill", result.data.get("skill_name"))
    skill = toolset.session.moment().find(name) if isinstance(name, str) else None
    if skill is not None:
        description = _shorten(skill.description, _MAX_VALUE_CHARS)
        span.set_attributes({"gen_ai.skill.name": skill.name, "gen_ai.skill.description": description})
    if result.is_error:
        _mark_failure(span, str(result.data.get("reason", "error")))
    return result


def _mark_failure(span: Span, code: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", code)
    span.set_status(Status(StatusCode.ERROR))
