"""The step of the demonstration in which the agent carries out a task: a scripted model, real skills, real tools."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from prowess.cli.render.blocks import Block, line

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.agent.approval import ToolAnswer, ToolRequest
    from prowess.agent.events import AgentEvent
    from prowess.conversation.acting.trust import AskAnswer

_TASK = "Profile orders.csv, and keep the result in report.md"
_REPORT = "# orders.csv\n\nProfiled with csv-report: see the counts above.\n"
_SCRIPT = {"name": "csv-report", "script": "scripts/profile.py", "args": ["orders.csv"]}
_TURNS: list[dict[str, Any]] = [
    {"text": "csv-report fits.", "calls": [{"tool": "load_skill", "arguments": {"name": "csv-report"}}]},
    {"calls": [{"tool": "run_skill_script", "arguments": _SCRIPT}]},
    {"calls": [{"tool": "Write", "arguments": {"path": "report.md", "content": _REPORT}}]},
    {"text": "Done: report.md has the result."},
]


class _AgreeingPerson:
    """A person who says yes, once."""

    async def ask_tool(self, request: ToolRequest) -> ToolAnswer:
        return "once"

    async def ask_trust(self, request: prowess.TrustRequest) -> AskAnswer:
        return True


def show_agent(catalog: prowess.Catalog, folder: str, grants: str) -> Iterator[Block]:
    """Yield what a run of the agent in ``folder`` did, or that it is left out; ``grants`` is the file of the grants."""
    if find_spec("pydantic_ai") is None:
        yield line(("Left out: it needs the extra 'agent'.", "warn"))
        return
    from prowess.agent.scripted_model import ScriptedModel, parse_script
    from prowess.agent.task_run import TaskOptions, run_task

    events: list[AgentEvent] = []
    model = ScriptedModel(parse_script({"turns": _TURNS}))
    options = TaskOptions(folder, person=_AgreeingPerson(), grants=grants)
    result = asyncio.run(run_task(_TASK, catalog, model, options, on_event=events.append))
    yield line(("$ ", "dim"), f'prowess run "{_TASK}"')
    text = ""
    for event in events:
        if event.kind == "text":
            text += event.detail["text"]
            continue
        if text and event.kind == "turn":
            yield line(("model  ", "title"), (text, "dim"))
            text = ""
        yield from _describe(event)
    # Tokens are not shown: those of the folder's name, which varies, would make each picture another.
    yield line((f"{result.status} after {len(result.turns)} turns; the screen shows the tokens of each", "dim"))


def _describe(event: AgentEvent) -> Iterator[Block]:
    detail = event.detail
    if event.kind == "call":
        arguments = detail["arguments"]
        subject = arguments.get("script") or arguments.get("path") or arguments.get("name")
        yield line(("call   ", "title"), (f"{detail['tool']}({subject})", "name"))
    elif event.kind == "decision":
        yield line(("person ", "title"), f"is asked about {detail['tool']} {detail['subject']}: yes, once")
    elif event.kind == "skill" and detail["what"] == "ran":
        yield line(("result ", "good"), f"exit status {detail['status']}, sandbox: {detail['sandbox']}")
    elif event.kind == "result" and detail["is_error"]:
        yield line(("failed ", "bad"), detail["content"].partition(".")[0][:60])
