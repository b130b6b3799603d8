"""A stand-in for a model, so that the demonstration needs no API keys: a few rules that read what a model reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator

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
