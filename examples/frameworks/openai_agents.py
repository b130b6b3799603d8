"""An agent of the OpenAI Agents SDK with skills: a person decides what runs, and the chat goes on after a restart.

Run it with ``pip install prowess 'openai-agents>=0.24'`` and OPENAI_API_KEY set.
"""

import asyncio

from agents import Agent, Runner, SQLiteSession

from prowess.adapters.openai_agents import Skills


async def main(model="gpt-5.6-luna", source=None, message="Hello!") -> str:
    skills = Skills(source, scripts=True)
    agent = skills.attach(Agent(name="Assistant", instructions="Be helpful.", model=model))
    session = skills.bind_session(SQLiteSession("ann"))
    result = await Runner.run(agent, message, session=session)
    while result.interruptions:
        state = result.to_state()
        for item in result.interruptions:
            answer = input(f"{skills.find_request(item) or item.arguments}\nMay this run? [y/N] ")
            (state.approve if answer == "y" else state.reject)(item)
        result = await Runner.run(agent, state, session=session)
    return str(result.final_output)


if __name__ == "__main__":
    print(asyncio.run(main()))
