"""An agent loop with skills, in any dialect: about what a host has to do, and no more.

The model is scripted, so that this runs anywhere: it sees only what a real one would (the system prompt, the tool
definitions, the messages), picks the skill whose description fits the request, loads it, reads the first reference that
the result names if there is a tool for it, and answers. Run it: ``python examples/agent_loop.py [dialect]``.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import prowess

SKILLS = Path(__file__).resolve().parent / "skills"
REQUEST = "Profile this CSV file for me: which columns have gaps?"


@dataclass
class ScriptedModel:
    """A stand-in for a model: a few rules over what it is shown."""

    system: str
    tools: list[prowess.JsonSchemaTool]

    def reply(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """Either ``{"call": name, "arguments": {…}}`` or ``{"text": answer}``."""
        results = [message for message in messages if message["role"] == "tool"]
        if not results:
            return self._call("load", self._fitting_skill(messages[0]["content"]))
        reference = re.search(r"references/[\w.-]+", results[0]["content"])
        if len(results) == 1 and reference and self._tool("file") is not None:
            return self._call("file", self._fitting_skill(messages[0]["content"]), reference[0])
        return {"text": f"Done, with {len(results)} look(s) at the skill."}

    def _fitting_skill(self, request: str) -> str:
        """The listed skill that shares most words with the request."""
        shown = self.system + "".join(tool["description"] for tool in self.tools)
        names = [skill.name for skill in prowess.scan(SKILLS) if skill.name in shown]
        words = set(re.findall(r"\w+", request.lower()))
        return max(names, key=lambda name: len(words & set(re.findall(r"\w+", _around(shown, name)))))

    def _tool(self, purpose: str) -> prowess.JsonSchemaTool | None:
        """The tool that loads is the first; that which reads a file takes a path."""
        if purpose == "load":
            return self.tools[0]
        return next((tool for tool in self.tools if _properties(tool).keys() & {"path", "resource"}), None)

    def _call(self, purpose: str, *values: str) -> dict[str, Any]:
        tool = self._tool(purpose)
        assert tool is not None, "there is always a tool that loads"
        return {"call": tool["name"], "arguments": dict(zip(_properties(tool), values, strict=False))}


def _properties(tool: prowess.JsonSchemaTool) -> dict[str, Any]:
    properties: dict[str, Any] = tool["parameters"]["properties"]
    return properties


def _around(text: str, name: str) -> str:
    begin = text.index(name)
    return text[begin : begin + 300].lower()


@dataclass
class Conversation:
    """What was said, and what the skills of it cost."""

    dialect: prowess.DialectName
    messages: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    answer: str = ""


def converse(dialect: prowess.DialectName, request: str = REQUEST) -> Conversation:
    """Hold the conversation through one dialect: this is the whole integration."""
    session = prowess.Session(prowess.scan(SKILLS))
    toolset = prowess.Toolset(session, dialect)
    tools = [definition.to_json_schema() for definition in toolset.tools(request)]
    model = ScriptedModel(system=toolset.prompt(request), tools=tools)
    said = Conversation(dialect, [{"role": "user", "content": request}])
    while not said.answer:
        reply = model.reply(said.messages)
        if "text" in reply:
            said.answer = reply["text"]
            continue
        result = toolset.call(reply["call"], reply["arguments"])
        assert not result.is_error, result.content
        said.calls.append(f"{reply['call']}({', '.join(map(repr, reply['arguments'].values()))})")
        said.messages.append({"role": "tool", "content": result.content})
    return said


def main(wanted: list[str]) -> None:
    """Show the same conversation in each dialect."""
    for dialect in [name for name in prowess.DIALECTS if not wanted or name in wanted]:
        said = converse(dialect)
        loaded = len(said.messages[1]["content"])
        print(f"{dialect:16} {' → '.join(said.calls)}\n{'':16} {loaded:,} characters loaded; {said.answer}")


if __name__ == "__main__":
    main(sys.argv[1:])
