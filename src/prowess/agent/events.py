"""What happens in a run of the agent, as it happens: for the screen, for ``--json``, and for the transcript."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    OnAgentEvent = Callable[["AgentEvent"], None]

AgentEventKind = Literal["start", "text", "call", "result", "skill", "decision", "turn", "end"]


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """One thing that happened in a run of the agent.

    ``start``: the run begins. ``text``: the model said something more. ``call`` and ``result``: a tool is called, and
    has answered. ``skill``: the engine did something with a skill, such as load it or run a script of it. ``decision``:
    a call of one of the agent's own tools was allowed or refused. ``turn``: the model has answered one request.
    ``end``: the run is over.
    """

    kind: AgentEventKind
    detail: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON types."""
        return {"event": self.kind, **self.detail}
