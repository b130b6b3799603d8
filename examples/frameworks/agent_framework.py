"""An agent of Microsoft's Agent Framework with skills.

Run it in the root of the repository: ``python -m examples.frameworks.agent_framework``.
"""

import asyncio
from pathlib import Path

from agent_framework import Agent, SupportsChatGetResponse

from prowess.adapters.agent_framework import Skills

SKILLS = Path(__file__).resolve().parents[1] / "skills"


async def main(client: SupportsChatGetResponse) -> str:
    """Return what the agent answers to one request."""
    agent = Agent(client, "You help.", context_providers=[Skills(SKILLS)])
    response = await agent.run("Profile this CSV file: which columns have gaps?", session=agent.create_session())
    return response.text


if __name__ == "__main__":
    from agent_framework.openai import OpenAIChatClient  # any chat client will do: this one needs another package

    print(asyncio.run(main(OpenAIChatClient(model="gpt-5"))))
