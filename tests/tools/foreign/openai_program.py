"""A program with the package openai: what tools export goes into its calls as it is."""

from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam

import prowess


def chat(client: OpenAI, toolset: prowess.Toolset, messages: list[ChatCompletionMessageParam]) -> list[str]:
    """The calls that a model makes of the tools, answered."""
    tools = [tool.to_openai() for tool in toolset.tools()]
    completion = client.chat.completions.create(model="m", messages=messages, tools=tools)
    calls = completion.choices[0].message.tool_calls or []
    for call in calls:
        if call.type == "function":
            messages.extend(toolset.call(call.function.name, call.function.arguments).to_openai(call.id))
    return [message["role"] for message in toolset.call("load_skill", {"name": "pdf"}).to_openai("call-1")]


def respond(client: OpenAI, toolset: prowess.Toolset) -> str:
    """The answer of the other API."""
    tools = [tool.to_openai_responses() for tool in toolset.tools()]
    return client.responses.create(model="m", input="Hello.", instructions=toolset.prompt(), tools=tools).output_text


def respond_again(client: OpenAI, toolset: prowess.Toolset) -> str:
    """The results of calls, given to the other API."""
    result = toolset.call("load_skill", {"name": "pdf"}).to_openai_responses("call-1")
    answer = client.responses.create(model="m", input=[result])
    return f"{result['type']}: {answer.output_text}"


async def respond_later(client: AsyncOpenAI, toolset: prowess.Toolset) -> str:
    """The same from asynchronous code."""
    tools = [tool.to_openai() for tool in await toolset.atools()]
    completion = await client.chat.completions.create(
        model="m", messages=[{"role": "system", "content": await toolset.aprompt()}], tools=tools
    )
    return completion.choices[0].message.content or ""


def describe(toolset: prowess.Toolset) -> dict[str, str]:
    """What the shapes hold, read back."""
    return {tool.to_openai()["function"]["name"]: tool.to_json_schema()["description"] for tool in toolset.tools()}
