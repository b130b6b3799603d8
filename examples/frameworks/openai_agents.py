"""An agent of the OpenAI Agents SDK with skills; a person decides on the terminal what may run.

Run it in the root of the repository: ``python -m examples.frameworks.openai_agents``.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from agents import Agent, Model, Runner

from prowess import TrustRequest
from prowess.adapters.openai_agents import Skills


async def main(
    model: Model | str | None = None,
    source: str | Path = "examples/skills",
    decide: Callable[[TrustRequest | None], bool] = lambda request: input(f"{request}\nRun it? ") == "yes",
) -> str:
    """Ask one question; while the agent waits for approvals, ask the person, and return the answer."""
    skills = Skills(source, scripts=True)
    agent = skills.attach(Agent(name="Assistant", instructions="Be helpful.", model=model))
    result = await Runner.run(agent, "How many words has 'to be or not'?")
    while result.interruptions:
        state = result.to_state()
        for item in result.interruptions:
            (state.approve if decide(skills.find_request(item)) else state.reject)(item)
        result = await Runner.run(agent, state)
    return str(result.final_output)


if __name__ == "__main__":
    print(asyncio.run(main()))
