"""A program with mistakes: a type checker names each of the lines that end in ``MISTAKE``."""

from anthropic import Anthropic
from openai import OpenAI

import prowess


def mistake(openai: OpenAI, anthropic: Anthropic, catalog: prowess.Catalog) -> None:
    session = prowess.Session(catalog)
    toolset = prowess.Toolset(session, "klingon")  # MISTAKE
    prowess.Toolset(catalog)  # MISTAKE
    prowess.Session(catalog, trust=True)  # MISTAKE
    wrong_way = [tool.to_anthropic() for tool in toolset.tools()]
    openai.chat.completions.create(model="m", messages=[], tools=wrong_way)  # MISTAKE
    other_way = [tool.to_openai_responses() for tool in toolset.tools()]
    anthropic.messages.create(model="m", max_tokens=1, messages=[], tools=other_way)  # MISTAKE
    toolset.tools()[0].to_mcp()["input_schema"]  # MISTAKE
    result = toolset.call("load_skill")
    anthropic.messages.create(model="m", max_tokens=1, messages=result.to_openai("call-1"))  # MISTAKE
    openai.chat.completions.create(model="m", messages=[result.to_anthropic("call-1")])  # MISTAKE
    openai.responses.create(model="m", input=[result.to_mcp()])  # MISTAKE
    result.to_mcp()["is_error"]  # MISTAKE


def follow(folder: str) -> None:
    """An option that does not exist."""
    prowess.live(folder, mod="strict")  # MISTAKE
