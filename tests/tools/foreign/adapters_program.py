"""A program with the adapters of two clients: their types stay those of the program."""

from dataclasses import dataclass

from agents import Agent, Runner, SQLiteSession
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

import prowess
from prowess.adapters.openai import Skills as OpenAISkills
from prowess.adapters.openai_agents import Skills


@dataclass
class Context:
    """What the program passes to its tools."""

    user: str


async def talk(skills: Skills) -> str:
    """A run over a session that the skills have bound; the agent keeps the type of its context."""
    agent: Agent[Context] = skills.attach(Agent[Context](name="assistant"))
    session = skills.bind_session(SQLiteSession("one"))
    result = await Runner.run(agent, "Hello.", context=Context("ann"), session=session)
    return str(result.final_output)


def go_on(skills: OpenAISkills, client: OpenAI) -> list[ChatCompletionMessageParam]:
    """The messages of a run are those of the next one."""
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello."}]
    result = skills.run(client, model="m", messages=messages)
    messages = result.messages
    messages.append({"role": "user", "content": "Thanks."})
    return messages


def follow(folder: str) -> prowess.Live:
    """The options of live and watch are known by their names."""
    for _ in prowess.watch(folder, mode="strict", max_depth=2):
        break
    return prowess.live(folder, every=2.0, mode="lenient", limits=prowess.Limits())
