"""What happens in a conversation, as one stream of events to whoever asked for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    OnEvent = Callable[["Event"], None]

Kind = Literal[
    "listed",
    "cut",
    "activated",
    "refused",
    "read",
    "deactivated",
    "refreshed",
    "selector-failed",
    "expanded",
    "forked",
    "ran",
]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: its kind, the skill it is about (``""`` for several), and the particulars."""

    kind: Kind
    skill: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)

    def attributes(self) -> dict[str, object]:
        """The event as telemetry attributes, under the names of the OpenTelemetry conventions for skills."""
        named = {"gen_ai.skill.name": self.skill} if self.skill else {}
        known = {"location": "gen_ai.skill.source.uri", "path": "gen_ai.skill.resource.name"}
        return {**named, **{known[key]: value for key, value in self.detail.items() if key in known}}


def log_events(logger_name: str = "prowess") -> OnEvent:
    """A callback that writes every event to the standard library's logging."""
    import logging  # noqa: PLC0415 - only when the caller asks

    logger = logging.getLogger(logger_name)

    def write(event: Event) -> None:
        level = logging.WARNING if event.kind in {"refused", "selector-failed"} else logging.INFO
        logger.log(level, "%s %r %r", event.kind, event.skill, dict(event.detail))

    return write
