"""A program with the package anthropic: what tools export goes into its calls as it is."""

from anthropic import Anthropic, AsyncAnthropic
from anthropic.types import MessageParam, ToolResultBlockParam

import prowess


def answer(client: Anthropic, toolset: prowess.Toolset, messages: list[MessageParam]) -> list[ToolResultBlockParam]:
    """The results of the calls that a model makes."""
    tools = [tool.to_anthropic() for tool in toolset.tools()]
    message = client.messages.create(model="m", max_tokens=100, system=toolset.prompt(), messages=messages, tools=tools)
    calls = [block for block in message.content if block.type == "tool_use"]
    return [toolset.call(block.name, block.input).to_anthropic(block.id) for block in calls]


def reply(toolset: prowess.Toolset, messages: list[MessageParam]) -> str:
    """A message with a result, and what the shape holds, read back."""
    result = toolset.call("load_skill", {"name": "pdf"}).to_anthropic("call-1")
    messages.append({"role": "user", "content": [result]})
    return result["tool_use_id"]


async def count(client: AsyncAnthropic, toolset: prowess.Toolset) -> int:
    """What the tools cost."""
    tools = [tool.to_anthropic() for tool in await toolset.atools()]
    counted = await client.messages.count_tokens(
        model="m", messages=[{"role": "user", "content": "Hello."}], tools=tools
    )
    return counted.input_tokens
