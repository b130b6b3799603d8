"""What skills add to a run of an agent: ``python -m bench.adapter_turns FRAMEWORK ROOT`` prints one JSON object.

A run has two requests, with a scripted model that needs no network: the model loads one skill, and then answers. The
same run is made with the framework alone, whose agent has the same listing as its system text and one tool that
returns the same instructions. The difference is what the adapter costs. It stands beside what the engine itself needs
for this: a session, the prompt and the tools of two requests, and one call.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from importlib import import_module
from statistics import median
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import prowess

if TYPE_CHECKING:
    from collections.abc import Callable

    Work = Callable[[], object]

RUNS = 150
QUERY = "What is in orders.csv?"
ANSWER = "Forty-two orders."


def run_engine(catalog: prowess.Catalog, name: str) -> str:
    """Do with the engine alone what an adapter needs of it in one run; return the instructions."""
    toolset = prowess.Toolset(prowess.Session(catalog))
    toolset.prompt(QUERY)
    toolset.tools(QUERY)
    result = toolset.call("load_skill", {"name": name})
    toolset.prompt(QUERY)
    toolset.tools(QUERY)
    assert not result.is_error
    return result.content


def make_pydantic_ai(skills: Any, catalog: prowess.Catalog, name: str) -> tuple[Work, Work]:
    """Return the run with skills, and the one without."""
    from pydantic_ai import Agent, Tool
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def respond(messages: list[Any], _: object) -> Any:
        first = not any(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(parts=[ToolCallPart("load_skill", {"name": name}) if first else TextPart(ANSWER)])

    listing, definitions, load = _prepare_plain(catalog, name)
    tool = Tool.from_schema(
        load, "load_skill", definitions[0].description, definitions[0].to_json_schema()["parameters"]
    )
    skilled = Agent(FunctionModel(respond), capabilities=[skills])
    plain = Agent(FunctionModel(respond), instructions=listing, tools=[tool])
    loop = asyncio.new_event_loop()

    def run(agent: Any) -> object:
        return loop.run_until_complete(agent.run(QUERY)).output

    return lambda: run(skilled), lambda: run(plain)


def make_anthropic(skills: Any, catalog: prowess.Catalog, name: str) -> tuple[Work, Work]:
    """Return the run with skills, and the loop that one writes without."""
    from anthropic.types import Message

    def create(*, messages: list[Any], **_: object) -> Message:
        call = {"type": "tool_use", "id": "call-1", "name": "load_skill", "input": {"name": name}}
        first = len(messages) == 1
        return Message.model_validate(
            {
                "id": "message",
                "type": "message",
                "role": "assistant",
                "model": "scripted",
                "content": [call if first else {"type": "text", "text": ANSWER}],
                "stop_reason": "tool_use" if first else "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        )

    client: Any = SimpleNamespace(messages=SimpleNamespace(create=create))
    question = {"role": "user", "content": QUERY}
    listing, definitions, load = _prepare_plain(catalog, name)
    tools = [definition.to_anthropic() for definition in definitions]

    def run_plain() -> str:
        messages: list[Any] = [question]
        while True:
            reply = client.messages.create(model="m", max_tokens=9, system=listing, tools=tools, messages=messages)
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                return str(reply.content[0].text)
            results = [{"type": "tool_result", "tool_use_id": call.id, "content": load(**call.input)} for call in calls]
            messages += [reply.to_dict(), {"role": "user", "content": results}]

    return lambda: skills.run(client, model="m", messages=[question]).text, run_plain


def make_openai(skills: Any, catalog: prowess.Catalog, name: str) -> tuple[Work, Work]:
    """Return the run with skills, and the loop that one writes without."""
    from openai.types.chat import ChatCompletion

    def create(*, messages: list[Any], **_: object) -> ChatCompletion:
        function = {"name": "load_skill", "arguments": json.dumps({"name": name})}
        call = {"role": "assistant", "tool_calls": [{"id": "call-1", "type": "function", "function": function}]}
        first = len(messages) == 2
        message = call if first else {"role": "assistant", "content": ANSWER}
        choice = {"index": 0, "finish_reason": "tool_calls" if first else "stop", "message": message}
        return ChatCompletion.model_validate(
            {"id": "c", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice]}
        )

    client: Any = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    question = {"role": "user", "content": QUERY}
    listing, definitions, load = _prepare_plain(catalog, name)
    tools = [definition.to_openai() for definition in definitions]

    def run_plain() -> str:
        messages: list[Any] = [{"role": "system", "content": listing}, question]
        while True:
            reply = client.chat.completions.create(model="m", tools=tools, messages=messages).choices[0].message
            messages.append(reply.to_dict())
            if not reply.tool_calls:
                return str(reply.content)
            for call in reply.tool_calls:
                content = load(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    return lambda: skills.run(client, model="m", messages=[question]).text, run_plain


def _prepare_plain(
    catalog: prowess.Catalog, name: str
) -> tuple[str, tuple[prowess.ToolDefinition, ...], Callable[..., str]]:
    """Return what a run without skills gets in their place: a text, tools, and a function that returns a text."""
    toolset = prowess.Toolset(prowess.Session(catalog))
    instructions = run_engine(catalog, name)

    def load(name: str) -> str:
        assert name
        return instructions

    return toolset.prompt(QUERY), toolset.tools(QUERY), load


FRAMEWORKS = {"pydantic_ai": make_pydantic_ai, "anthropic": make_anthropic, "openai": make_openai}


def measure(framework: str, root: str) -> dict[str, float]:
    """Return the medians of what skills add to a run (``value``), and of the engine's own share (``floor``)."""
    catalog = prowess.scan(root)
    name = catalog.names[0]
    skills = import_module(f"prowess.adapters.{framework}").Skills(catalog)
    with_skills, without = FRAMEWORKS[framework](skills, catalog, name)
    assert with_skills() == without() == ANSWER
    times: dict[str, list[int]] = {"engine": [], "skills": [], "plain": []}
    works: dict[str, Work] = {"engine": lambda: run_engine(catalog, name), "skills": with_skills, "plain": without}
    gc.collect()
    gc.disable()
    for number in range(RUNS + 5):
        for what, work in works.items():
            begin = time.process_time_ns()  # of all threads: an asynchronous adapter has the engine work in one
            work()
            if number >= 5:
                times[what].append(time.process_time_ns() - begin)
        if number % 25 == 0:
            gc.collect()
    added = median(one - other for one, other in zip(times["skills"], times["plain"], strict=True))
    return {"value": added / 1e9, "floor": median(times["engine"]) / 1e9}


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
