"""``fastmcp_client.py COMMAND… | URL``: asks a server for everything, checks it, and prints what it saw as JSON."""

import asyncio
import base64
import hashlib
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.skills import SkillsClientExtension


async def seen(client: Client[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for listed in await client.list_skills():
        skill = await client.get_skill(listed.uri)
        assert skill == listed
        for row in skill.resources:
            (content,) = await client.read_resource(row.uri)
            text = getattr(content, "text", None)
            data = text.encode() if text is not None else base64.b64decode(content.blob)
            assert len(data) == row.size
            assert f"sha256:{hashlib.sha256(data).hexdigest()}" == row.digest
        found[skill.uri] = {"frontmatter": skill.frontmatter.root, "files": len(skill.resources)}
    tools = [tool.name for tool in await client.list_tools()]
    loaded = await client.call_tool("load_skill", {"name": "pdf"})
    prompt = await client.get_prompt("pdf", {})
    texts = [loaded.content[0].text, prompt.messages[0].content.text]
    return {"skills": found, "tools": tools, "texts": texts}


async def main() -> None:
    way = sys.argv[1] if len(sys.argv) == 2 else StdioTransport(command=sys.argv[1], args=sys.argv[2:])
    async with Client(way, extensions=[SkillsClientExtension()]) as client:
        sys.stdout.write(json.dumps(await seen(client)))


asyncio.run(main())
