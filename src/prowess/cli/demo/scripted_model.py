"""A stand-in for a model, so that the demonstration needs no keys: a few rules over what a model would be shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator

_ENTRY = re.compile(r"<name>([^<]+)</name>\s*<description>([^<]*)</description>")
_WORDS = re.compile(r"[a-z]+")
_COUNT = re.compile(r"There are (\d+) entries")
_REFERENCE = re.compile(r"references/[\w.-]+")


class Call(NamedTuple):
    """A tool call, and what the model says to it."""

    tool: str
    arguments: dict[str, Any]
    thought: str = ""


class ScriptedModel:
    """Picks the skill that fits, follows its instructions, and once falls for a note that says to look elsewhere."""

    def __init__(self, system: str) -> None:
        self._listed: list[tuple[str, str]] = _ENTRY.findall(system)

    def fitting(self, request: str) -> str:
        """The listed skill whose description shares most words with the request."""
        words = set(_WORDS.findall(request.lower()))
        return max(self._listed, key=lambda entry: len(words & set(_WORDS.findall(entry[1].lower()))))[0]

    def calls(self, request: str) -> Generator[Call, str, None]:
        """The turns of the conversation; each result is sent back before the next."""
        name = self.fitting(request)
        instructions = yield Call("load_skill", {"name": name}, "A description fits: load its instructions.")
        named = _REFERENCE.search(instructions)
        path = named[0] if named else "SKILL.md"
        yield Call("read_skill_file", {"name": name, "path": path}, f"The instructions name {path}: read it.")
        outside = {"name": name, "path": "../../../etc/passwd"}
        yield Call("read_skill_file", outside, "A note in the data says to read another file.")
        script = {"name": name, "script": "scripts/profile.py", "args": ["orders.csv"]}
        yield Call("run_skill_script", script, "The instructions say to run a script.")


def answer_as_child(instructions: str) -> str:
    """What a sub-agent answers that was told to look at ``skills/``: what the command in its instructions counted."""
    count = _COUNT.search(instructions)
    if count is None:
        return "I cannot tell: the command in my instructions did not run."
    return f"skills/ holds {count[1]} entries."
