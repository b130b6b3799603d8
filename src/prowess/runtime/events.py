"""What happens in a conversation, as one stream of events to whoever asked for it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from prowess.host_errors import log_host_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    OnEvent = Callable[["Event"], None]

F = TypeVar("F", bound="Callable[..., Any]")

EventKind = Literal[
    "listed",
    "cut",
    "activated",
    "refused",
    "read",
    "deactivated",
    "refreshed",
    "selector-failed",
    "expanded",
    "not-expanded",
    "forked",
    "ran",
    "pending",
    "approved",
    "host-failed",
]

EventDecision = Literal["", "allowed", "refused", "pending", "approved"]

_DECISIONS: dict[str, EventDecision] = {
    "activated": "allowed",
    "read": "allowed",
    "expanded": "allowed",
    "forked": "allowed",
    "ran": "allowed",
    "refused": "refused",
    "not-expanded": "refused",
    "pending": "pending",
    "approved": "approved",
}
"""What an event of a kind says was decided; nothing is decided in the others."""

_WARNING_KINDS = frozenset(("refused", "not-expanded", "selector-failed", "host-failed"))
"""The kinds that a log has as warnings."""

_CALL_START: ContextVar[float | None] = ContextVar("prowess_began", default=None)
_RECORDED_KINDS: ContextVar[list[str] | None] = ContextVar("prowess_told", default=None)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: its kind, the skill it is about (``""`` for several), and the particulars.

    The session adds the rest when it tells of the event.
    """

    kind: EventKind
    skill: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)
    time: float = 0.0
    """When it happened, in seconds since 1970."""
    session: str = ""
    """The id of the session."""
    seconds: float | None = None
    """How long it took: the script, the command, or the call that it ended; ``None`` where nothing was measured."""
    decision: EventDecision = ""
    """What was decided: ``allowed``, ``refused`` (``code`` in the particulars says why), or ``""`` for nothing."""

    def attributes(self) -> dict[str, object]:
        """The event as telemetry attributes, under the names of the OpenTelemetry conventions for skills."""
        named = {"gen_ai.skill.name": self.skill} if self.skill else {}
        known = {"location": "gen_ai.skill.source.uri", "path": "gen_ai.skill.resource.name"}
        return {**named, **{known[key]: value for key, value in self.detail.items() if key in known}}


class EventEmitter:
    """Passes the events of one conversation on to whoever listens."""

    __slots__ = ("on_event", "session")

    def __init__(self, on_event: OnEvent | None, session: str = "") -> None:
        self.on_event = on_event
        self.session = session

    def send(self, event: Event) -> None:
        """Pass an event on; a listener that fails does not disturb the conversation."""
        told = _RECORDED_KINDS.get()
        if told is not None:
            told.append(event.kind)
        if self.on_event is None:
            return
        try:
            self.on_event(stamp_event(event, self.session))
        except Exception as error:  # noqa: BLE001 - the listener is the host's; the conversation goes on
            log_host_error("on_event", error)
            if event.kind == "host-failed":  # it cannot take even this
                return
            self.emit("host-failed", event.skill, where="on_event", error=type(error).__name__)

    def emit(self, kind: EventKind, skill: str, **detail: object) -> None:
        """The same for an event that is made only if somebody listens."""
        if self.on_event is None:
            told = _RECORDED_KINDS.get()
            if told is not None:
                told.append(kind)
            return
        self.send(Event(kind, skill, detail))

    def report_host_error(self, where: str, error: Exception, skill: str = "") -> None:
        """Log an exception that the host's own code raised, with its traceback, and tell of it."""
        if log_host_error(where, error):
            self.emit("host-failed", skill, where=where, error=type(error).__name__)


def stamp_event(event: Event, session: str) -> Event:
    """The event with the time of now, its session, how long it took and what was decided, where it does not say so."""
    return replace(
        event,
        time=event.time or time.time(),
        session=event.session or session,
        seconds=event.seconds if event.seconds is not None else _event_seconds(event),
        decision=event.decision or _DECISIONS.get(event.kind, ""),
    )


def _event_seconds(event: Event) -> float | None:
    """How long a program ran, where one did; else the time since the call began that is measured."""
    ran = event.detail.get("seconds")
    if isinstance(ran, float):
        return ran
    began = _CALL_START.get()
    return None if began is None else time.perf_counter() - began


def measure_call() -> Callable[[F], F]:
    """Return a decorator that measures calls: events told inside of one took as long as it has been running by then.

    Of calls inside one another the innermost counts. For functions that are not asynchronous.
    """
    return _wrap_function


def _wrap_function(function: F) -> F:
    # A plain wrapper, not ``contextlib.contextmanager`` as a decorator: that makes a generator and two objects at each
    # call, 5 % of the bench row "load_skill, first call", which passes two of these.
    @wraps(function)
    def call_and_measure(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the function takes and returns
        token = _CALL_START.set(time.perf_counter())
        try:
            return function(*args, **kwargs)
        finally:
            _CALL_START.reset(token)

    return cast("F", call_and_measure)


@contextmanager
def record_event_kinds() -> Iterator[list[str]]:
    """The kinds of events that are told inside the block, by this thread or task."""
    kinds: list[str] = []
    token = _RECORDED_KINDS.set(kinds)
    try:
        yield kinds
    finally:
        _RECORDED_KINDS.reset(token)


def log_events(logger_name: str = "prowess") -> OnEvent:
    """A callback that writes every event to the standard library's logging."""
    import logging  # noqa: PLC0415 - only when the caller asks

    logger = logging.getLogger(logger_name)

    def write_event(event: Event) -> None:
        level = logging.WARNING if event.kind in _WARNING_KINDS else logging.INFO
        logger.log(level, "%s %r %r", event.kind, event.skill, dict(event.detail))

    return write_event
