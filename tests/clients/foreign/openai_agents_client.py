"""One question to an agent of openai-agents, whose server is what ``prowess serve --config openai-agents`` printed.

Arguments: the file with that program, the address of the model's provider, the question.
"""

import asyncio
import runpy
import sys

from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

configuration, address, question = sys.argv[1:]
set_tracing_disabled(disabled=True)


async def main() -> None:
    """Ask, and wait for the answer."""
    async with runpy.run_path(configuration)["server"] as server:
        client = AsyncOpenAI(base_url=f"{address}/v1", api_key="none")
        model = OpenAIResponsesModel("fake-model", client)
        agent = Agent("asker", instructions="Be brief.", model=model, mcp_servers=[server])
        await Runner.run(agent, question, max_turns=60)


asyncio.run(main())
