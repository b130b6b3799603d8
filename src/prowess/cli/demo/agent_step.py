"""The step of the demonstration in which the agent carries out a task: a scripted model, real skills, real tools."""

from __future__ import annotations

import asyncio
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.cli.render.blocks import Block, line

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    import prowess
    from prowess.agent.approval import ToolAnswer, ToolRequest
    from prowess.agent.task_result import AgentEvent
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


_SKILL_PATTERN = re.compile(r"<name>([^<]+)</name>\s*<description>([^<]*)</description>")
_WORD_PATTERN = re.compile(r"[a-z]+")
_COUNT_PATTERN = re.compile(r"There are (\d+) entries")
_REFERENCE_PATTERN = re.compile(r"references/[\w.-]+")


class DemoCall(NamedTuple):
    """A tool call, and what the model thinks about it."""

    tool: str
    arguments: dict[str, Any]
    thought: str = ""


class DemoModel:
    """A model that picks a skill and follows its instructions. Once it follows a malicious note in the data."""

    def __init__(self, system: str) -> None:
        self._skills: list[tuple[str, str]] = _SKILL_PATTERN.findall(system)

    def pick_skill(self, request: str) -> str:
        """Return the listed skill whose description shares most words with the request."""
        words = set(_WORD_PATTERN.findall(request.lower()))
        return max(self._skills, key=lambda entry: len(words & set(_WORD_PATTERN.findall(entry[1].lower()))))[0]

    def take_turns(self, request: str) -> Generator[DemoCall, str, None]:
        """Yield the calls of the conversation. The caller sends the result of each back before the next."""
        name = self.pick_skill(request)
        instructions = yield DemoCall("load_skill", {"name": name}, "A description fits: load its instructions.")
        named = _REFERENCE_PATTERN.search(instructions)
        path = named[0] if named else "SKILL.md"
        yield DemoCall("read_skill_file", {"name": name, "path": path}, f"The instructions name {path}: read it.")
        # What an injected note makes a real model do: the toolset has to refuse it.
        outside = {"name": name, "path": "../../../etc/passwd"}
        yield DemoCall("read_skill_file", outside, "A note in the data says to read another file.")
        script = {"name": name, "script": "scripts/profile.py", "args": ["orders.csv"]}
        yield DemoCall("run_skill_script", script, "The instructions say to run a script.")


def answer_as_subagent(instructions: str) -> str:
    """Return the answer of a sub-agent that counts ``skills/``: the number that a command in its instructions gave."""
    count = _COUNT_PATTERN.search(instructions)
    return (
        "I cannot tell: the command in my instructions did not run."
        if count is None
        else f"skills/ holds {count[1]} entries."
    )
