"""What a run of the agent did: its events as they happen, and at the end its answer, its calls and its tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic_ai.messages import ModelMessage

    from prowess.errors import SkillError

    OnAgentEvent = Callable[["AgentEvent"], None]


TaskStatus = Literal["done", "limit", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of a tool: its name, its arguments, and how it ended."""

    tool: str
    arguments: Any
    is_error: bool = False
    content: str = ""
    skill: str = ""
    """The skill that made the call as a child agent; ``""``: the agent itself."""


@dataclass(frozen=True, slots=True)
class TurnTokens:
    """The tokens of one request to the model: sent, received, and how many of those sent came from a cache."""

    sent: int
    received: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a run of the agent did."""

    status: TaskStatus
    text: str
    """The last answer of the model; ``""`` when it gave none. An answer that was cut has the code ``answer-cut``."""
    skills_loaded: tuple[str, ...] = ()
    files_read: tuple[tuple[str, str], ...] = ()
    """Files of skills that were read: the skill, and the path."""
    scripts_run: tuple[tuple[str, str, int], ...] = ()
    """Scripts of skills that ran: the skill, the script, and its exit status."""
    forks: tuple[str, ...] = ()
    """The skills that ran as child agents."""
    calls: tuple[CallRecord, ...] = ()
    turns: tuple[TurnTokens, ...] = ()
    """The tokens of each request of the agent itself; ``tokens`` has those of its child agents too."""
    tokens: TurnTokens = TurnTokens(0, 0)
    made: tuple[str, ...] = ()
    """New entries of the working folder that programs outside of the sandbox obey, such as a repository of git."""
    messages: tuple[ModelMessage, ...] = ()
    error: SkillError | None = None
    """Why the run ended without an answer, or with one that was cut."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON types, without the messages."""
        return {
            "status": self.status,
            "text": self.text,
            "skills": list(self.skills_loaded),
            "files": [{"skill": skill, "path": path} for skill, path in self.files_read],
            "scripts": [{"skill": skill, "script": path, "status": status} for skill, path, status in self.scripts_run],
            "forks": list(self.forks),
            "calls": len(self.calls),
            "turns": len(self.turns),
            "tokens": {"sent": self.tokens.sent, "received": self.tokens.received, "cached": self.tokens.cached},
            "made": list(self.made),
            "error": {"code": self.error.code, "message": self.error.message} if self.error else None,
        }


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
