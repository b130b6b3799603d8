"""The other end of an MCP connection in tests.

``Talk`` is a client that sends any request to our server. ``Plan`` is a server that answers our client as a test says.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import Client
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from prowess.mcp import Server

EXTENSION = "io.modelcontextprotocol/skills"
ANYTHING: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
SCRIPT = Path(__file__).parent / "mcp" / "scripted_server.py"


def skill_md(name: str, description: str = "Does it.", body: str = "Do it.\n", fields: str = "") -> bytes:
    """Return the bytes of a valid SKILL.md."""
    return f"---\nname: {name}\ndescription: {description}\n{fields}---\n{body}".encode()


def put(root: Path, path: str, content: str | bytes) -> Path:
    """Write a file below a folder, and return its path."""
    where = root / path
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_bytes(content.encode() if isinstance(content, str) else content)
    return where


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


# -- a client for our server -------------------------------------------------------------------------------------------


class Talk:
    """A connection to our server, made with the client of the official SDK."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request, and return the answer as it came."""
        request = types.Request[dict[str, Any], str](method=method, params=params)
        answer: dict[str, Any] = await self.client.session.send_request(request, ANYTHING)
        return answer

    async def refusal(self, method: str, **params: Any) -> int:
        """Send a request that the server must refuse, and return the code of the error."""
        try:
            await self.ask(method, **params)
        except MCPError as error:
            return error.code
        raise AssertionError(f"{method} was answered")

    async def all_skills(self) -> list[dict[str, Any]]:
        """Return every entry of the listing, from all pages."""
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            answer = await self.ask("skills/list", **params)
            found += answer["skills"]
            if "nextCursor" not in answer:
                return found
            params = {"cursor": answer["nextCursor"]}


async def offered(connection: Talk) -> dict[str, list[str]]:
    """Return the names of the skills that the server offers as skills, resources, prompts and tools."""
    resources = (await connection.ask("resources/list"))["resources"]
    prompts = (await connection.ask("prompts/list"))["prompts"]
    tools = (await connection.ask("tools/list"))["tools"]
    listings = [tool["description"] for tool in tools if tool["name"] == "load_skill"]
    names = re.findall(r"(?m)^- ([^:\n]+)", listings[0]) if listings else []
    return {
        "skills": sorted(entry["frontmatter"]["name"] for entry in await connection.all_skills()),
        "resources": sorted(row["name"] for row in resources),
        "prompts": sorted(row["name"] for row in prompts),
        "tools": sorted(names),
    }


def everywhere(*names: str) -> dict[str, list[str]]:
    """Return what ``offered`` returns when exactly these skills are offered in every way."""
    return {way: sorted(names) for way in ("skills", "resources", "prompts", "tools")}


@asynccontextmanager
async def talking(server: Server, mode: str = "auto", **options: Any) -> AsyncIterator[Talk]:
    """Connect a client in this process. With ``mode="legacy"`` it speaks the older protocol."""
    async with Client(server.lowlevel, mode=mode, extensions=[advertise(EXTENSION)], cache=None, **options) as client:
        yield Talk(client)


def talk(server: Server, words: Callable[[Talk], Coroutine[Any, Any, Any]], mode: str = "auto") -> Any:
    """Connect to a server, and return what the coroutine function ``words`` returns for the connection."""

    async def whole() -> Any:
        async with talking(server, mode) as connection:
            return await words(connection)

    return asyncio.run(whole())


# -- a server that does as it is told ----------------------------------------------------------------------------------


def entry_of(name: str, files: Mapping[str, bytes], fields: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the correct entry for a skill with these files."""
    rows = [{"uri": f"skill://{name}/{p}", "digest": sha256(d), "size": len(d)} for p, d in files.items()]
    front = {"name": name, "description": "Does it.", **(fields or {})}
    return {"uri": f"skill://{name}/SKILL.md", "frontmatter": front, "resources": rows}


def contents_of(uri: str, data: bytes) -> dict[str, Any]:
    """Return the answer to a read of a text file."""
    row = {"uri": uri, "mimeType": "text/plain", "text": data.decode()}
    return {"resultType": "complete", "contents": [row], "ttlMs": 0, "cacheScope": "private"}


@dataclass
class Plan:
    """A server that answers as the fields say, and logs its requests. The program is ``mcp/scripted_server.py``."""

    folder: Path
    extension: bool = True
    skills: list[dict[str, Any]] = field(default_factory=list)
    reads: dict[str, dict[str, Any]] = field(default_factory=dict)
    gets: dict[str, dict[str, Any]] = field(default_factory=dict)
    listing: dict[str, Any] = field(default_factory=dict)
    """How the listing goes on: ``endless``, ``loop``, ``hang``, ``hang_after`` pages, ``slow`` seconds a page,
    ``flood`` of megabytes, ``fat`` pages, ``hollow`` entries, or whatever result lies in a ``file``."""
    reading: dict[str, Any] = field(default_factory=dict)
    start: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, files: Mapping[str, bytes] | None = None, **fields: Any) -> dict[str, Any]:
        """Add a skill that is served correctly, and return its entry, which a test may change."""
        files = files or {"SKILL.md": skill_md(name)}
        entry = entry_of(name, files, fields)
        self.skills.append(entry)
        self.gets[entry["uri"]] = entry
        self.reads |= {f"skill://{name}/{path}": contents_of(f"skill://{name}/{path}", d) for path, d in files.items()}
        return entry

    def command(self) -> list[str]:
        """Write the plan to a file, and return the command that starts the server with it."""
        keys = ("extension", "skills", "reads", "gets", "listing", "reading", "start")
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({key: getattr(self, key) for key in keys}), encoding="utf-8")
        return [sys.executable, "-I", str(SCRIPT), str(plan), str(self.log)]

    @property
    def log(self) -> Path:
        return self.folder / "asked.jsonl"

    def asked(self) -> list[tuple[str, str]]:
        """Return the method and the URI of every request so far."""
        if not self.log.exists():
            return []
        rows = [json.loads(row) for row in self.log.read_text(encoding="utf-8").splitlines()]
        return [(row["method"], (row.get("params") or {}).get("uri", "")) for row in rows]
