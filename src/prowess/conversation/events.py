"""The events of a conversation: what they hold, how they reach the host's listener, how calls are timed."""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from prowess.errors import log_host_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    OnEvent = Callable[["Event"], None]

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
    "missing",
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
"""What an event of each kind says was decided; events of the other kinds say nothing of it."""

_WARNING_KINDS = frozenset(("refused", "not-expanded", "selector-failed", "host-failed", "missing"))
"""The kinds that ``log_events`` logs as warnings."""

_CALL_START: ContextVar[float | None] = ContextVar("prowess_began", default=None)
_RECORDED_KINDS: ContextVar[list[str] | None] = ContextVar("prowess_told", default=None)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: its kind, the skill it is about (``""`` for several), and the details.

    The session fills in the other fields when it passes the event on.
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
    """What was decided: ``allowed``, ``refused`` (``code`` in the details says why), or ``""`` for nothing."""

    def attributes(self) -> dict[str, object]:
        """Return the event as telemetry attributes, under the names of the OpenTelemetry conventions for skills."""
        skill_name = {"gen_ai.skill.name": self.skill} if self.skill else {}
        known = {"location": "gen_ai.skill.source.uri", "path": "gen_ai.skill.resource.name"}
        return {**skill_name, **{known[key]: value for key, value in self.detail.items() if key in known}}


@dataclass(slots=True)
class EventEmitter:
    """Passes the events of one conversation on to the host's listener."""

    on_event: OnEvent | None
    session: str

    def emit(self, kind: EventKind, skill: str, **detail: object) -> None:
        """Make an event of these parts and pass it on; a listener that fails does not disturb the conversation."""
        recorded = _RECORDED_KINDS.get()
        if recorded is not None:
            recorded.append(kind)
        # Without a listener no event is made: this is passed several times in every call of a tool.
        if self.on_event is None:
            return
        # How long a program ran, where one did; else the time since the measured call began, if there is one.
        ran, began = detail.get("seconds"), _CALL_START.get()
        passed = None if began is None else time.perf_counter() - began
        seconds, decision = ran if isinstance(ran, float) else passed, _DECISIONS.get(kind, "")
        try:
            self.on_event(Event(kind, skill, detail, time.time(), self.session, seconds, decision))
        except Exception as error:  # noqa: BLE001 - the listener is the host's; the conversation goes on
            log_host_error("on_event", error)
            if kind != "host-failed":  # otherwise the listener fails for this event too: stop here
                self.emit("host-failed", skill, where="on_event", error=type(error).__name__)

    def report_host_error(self, where: str, error: Exception, skill: str = "") -> None:
        """Log an exception that the host's own code raised, with its traceback, and emit an event about it."""
        if log_host_error(where, error):
            self.emit("host-failed", skill, where=where, error=type(error).__name__)


@contextmanager
def measure_call() -> Iterator[None]:
    """Time the block: an event inside says how long it has been running; of nested blocks the innermost counts."""
    token = _CALL_START.set(time.perf_counter())
    try:
        yield
    finally:
        _CALL_START.reset(token)


@contextmanager
def record_event_kinds() -> Iterator[list[str]]:
    """Yield a list to which the kinds of the events are added that this thread or task emits inside the block."""
    kinds: list[str] = []
    token = _RECORDED_KINDS.set(kinds)
    try:
        yield kinds
    finally:
        _RECORDED_KINDS.reset(token)


def log_events(logger_name: str = "prowess") -> OnEvent:
    """Return a callback for ``on_event`` that writes every event to the standard library's logging."""
    import logging

    logger = logging.getLogger(logger_name)

    def write_event(event: Event) -> None:
        level = logging.WARNING if event.kind in _WARNING_KINDS else logging.INFO
        logger.log(level, "%s %r %r", event.kind, event.skill, dict(event.detail))

    return write_event
