"""One question to an agent of pydantic-ai, whose server is what ``prowess serve --config pydantic-ai`` printed.

Arguments: the file with that program, the address of the model's provider, the question.
"""

import asyncio
import runpy
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

configuration, address, question = sys.argv[1:]


async def main() -> None:
    """Ask, and wait for the answer."""
    provider = OpenAIProvider(base_url=f"{address}/v1", api_key="none")
    server = runpy.run_path(configuration)["server"]
    agent = Agent(OpenAIResponsesModel("fake-model", provider=provider), toolsets=[server])
    async with agent:
        await agent.run(question)


asyncio.run(main())
