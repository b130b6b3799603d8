"""Runs of the agent for the tests: a person who answers as told, a library of skills, and what happened."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import prowess
from prowess.agent.scripted_model import ScriptedModel, parse_script
from prowess.agent.task_run import TaskOptions, run_task
from tests.adapters.skill_library import write_library

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai.models import Model

    from prowess.agent.approval import ToolAnswer, ToolRequest
    from prowess.agent.task_result import AgentEvent, TaskResult
    from prowess.agent.transcript import EarlierRun, Transcript
    from prowess.conversation.acting.trust import AskAnswer


@dataclass
class Answering:
    """A person who gives one answer about tools and one about trust, and remembers what was asked."""

    tool: ToolAnswer = "once"
    trust: AskAnswer = True
    tools: list[ToolRequest] = field(default_factory=list)
    requests: list[prowess.TrustRequest] = field(default_factory=list)

    async def ask_tool(self, request: ToolRequest) -> ToolAnswer:
        self.tools.append(request)
        return self.tool

    async def ask_trust(self, request: prowess.TrustRequest) -> AskAnswer:
        self.requests.append(request)
        return self.trust


@dataclass
class Scene:
    """A working folder beside a library of skills, and the events of the runs in it."""

    base: Path
    events: list[AgentEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = self.base / "work"
        self.work.mkdir()
        self.skills = write_library(self.base / "skills")

    def run(
        self,
        model: Model,
        task: str = "do it",
        *,
        person: Answering | None = None,
        transcript: Transcript | None = None,
        earlier: EarlierRun | None = None,
        **options: Any,
    ) -> TaskResult:
        """Run a task to its end; return the result."""
        made = TaskOptions(str(self.work), person=person, **options)
        catalog = prowess.scan(self.skills)
        running = run_task(
            task, catalog, model, made, on_event=self.events.append, transcript=transcript, earlier=earlier
        )
        return asyncio.run(running)

    def told(self, kind: str) -> list[dict[str, Any]]:
        """The details of the events of a kind."""
        return [dict(event.detail) for event in self.events if event.kind == kind]

    @property
    def results(self) -> dict[str, str]:
        """What each tool answered last, by its name."""
        return {detail["tool"]: detail["content"] for detail in self.told("result")}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A turn of a script with one call."""
    return {"calls": [{"tool": tool, "arguments": arguments}]}


def script(*turns: dict[str, Any] | str) -> ScriptedModel:
    """A model that plays these turns; a text is a turn that says it."""
    return ScriptedModel(parse_script({"turns": [{"text": t} if isinstance(t, str) else t for t in turns]}))
