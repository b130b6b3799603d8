"""An agent of Google's Agent Development Kit with skills.

Run it in the root of the repository: ``python -m examples.frameworks.google_adk``.
"""

import asyncio
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.runners import InMemoryRunner

from prowess.adapters.google_adk import Skills

SKILLS = Path(__file__).resolve().parents[1] / "skills"


async def main(model: str | BaseLlm = "gemini-3-pro") -> str:
    """Return what the agent answers to one request."""
    agent = LlmAgent(name="helper", model=model, instruction="You help.", tools=[Skills(SKILLS)])
    events = await InMemoryRunner(agent).run_debug("Profile this CSV file: which columns have gaps?", quiet=True)
    return "".join(part.text or "" for part in events[-1].content.parts)


if __name__ == "__main__":
    print(asyncio.run(main()))
