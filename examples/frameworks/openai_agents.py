"""An agent of the OpenAI Agents SDK with skills; a person decides on the terminal what may run.

Run it in the root of the repository: ``python -m examples.frameworks.openai_agents``.
The model is OpenAI's: set OPENAI_API_KEY.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from agents import Agent, Model, Runner

from prowess.adapters.openai_agents import Skills

SKILLS = Path(__file__).parents[1] / "skills"


async def main(model: Model | None = None, source: Path = SKILLS, ask: Callable[[str], str] = input) -> str:
    """Ask one question; while the agent waits for approvals, ask the person, and return the answer."""
    skills = Skills(source, scripts=True)
    agent = skills.attach(Agent(name="Assistant", instructions="Be helpful.", model=model))
    result = await Runner.run(agent, "Profile assets/sample.csv of the skill csv-report.")
    while result.interruptions:
        state = result.to_state()
        for item in result.interruptions:
            answer = await asyncio.to_thread(ask, f"{skills.find_request(item)}\nRun it? ")
            (state.approve if answer == "yes" else state.reject)(item)
        result = await Runner.run(agent, state)
    return str(result.final_output)


if __name__ == "__main__":
    print(asyncio.run(main()))
