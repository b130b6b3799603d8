"""Both ends of MCP for tests: a client that asks our server anything, and a server that answers as it is told to."""

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
    """A SKILL.md that nothing is wrong with."""
    return f"---\nname: {name}\ndescription: {description}\n{fields}---\n{body}".encode()


def put(root: Path, path: str, content: str | bytes) -> Path:
    """Write a file below a folder."""
    where = root / path
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_bytes(content.encode() if isinstance(content, str) else content)
    return where


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


# -- asking our server -------------------------------------------------------------------------------------------------


class Talk:
    """A connection to our server by the official SDK's client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever the method takes
        """The answer, as it came."""
        request = types.Request[dict[str, Any], str](method=method, params=params)
        answer: dict[str, Any] = await self.client.session.send_request(request, ANYTHING)
        return answer

    async def refusal(self, method: str, **params: Any) -> int:  # noqa: ANN401
        """The code of the error that a request is answered with."""
        try:
            await self.ask(method, **params)
        except MCPError as error:
            return error.code
        raise AssertionError(f"{method} was answered")

    async def all_skills(self) -> list[dict[str, Any]]:
        """Every entry, page by page."""
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            answer = await self.ask("skills/list", **params)
            found += answer["skills"]
            if "nextCursor" not in answer:
                return found
            params = {"cursor": answer["nextCursor"]}


async def offered(connection: Talk) -> dict[str, list[str]]:
    """The names of the skills behind each way to them."""
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
    """What is offered when these skills are, behind each way."""
    return {way: sorted(names) for way in ("skills", "resources", "prompts", "tools")}


@asynccontextmanager
async def talking(server: Server, mode: str = "auto", **options: Any) -> AsyncIterator[Talk]:  # noqa: ANN401
    """A client in the same process; ``mode="legacy"``: of the older protocol."""
    async with Client(server.lowlevel, mode=mode, extensions=[advertise(EXTENSION)], cache=None, **options) as client:
        yield Talk(client)


def talk(server: Server, words: Callable[[Talk], Coroutine[Any, Any, Any]], mode: str = "auto") -> Any:  # noqa: ANN401
    """What ``words`` gives, said to a server."""

    async def whole() -> Any:  # noqa: ANN401
        async with talking(server, mode) as connection:
            return await words(connection)

    return asyncio.run(whole())


# -- a server that does as it is told ----------------------------------------------------------------------------------


def entry_of(name: str, files: Mapping[str, bytes], fields: dict[str, Any] | None = None) -> dict[str, Any]:
    """The right entry for these files."""
    rows = [{"uri": f"skill://{name}/{p}", "digest": sha256(d), "size": len(d)} for p, d in files.items()]
    front = {"name": name, "description": "Does it.", **(fields or {})}
    return {"uri": f"skill://{name}/SKILL.md", "frontmatter": front, "resources": rows}


def contents_of(uri: str, data: bytes) -> dict[str, Any]:
    """The answer to a read of text."""
    row = {"uri": uri, "mimeType": "text/plain", "text": data.decode()}
    return {"resultType": "complete", "contents": [row], "ttlMs": 0, "cacheScope": "private"}


@dataclass
class Plan:
    """What the scripted server answers, by method; a program and a log of what it was asked."""

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

    def add(self, name: str, files: Mapping[str, bytes] | None = None, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
        """A skill that is served as it should be; its entry, to be changed as a case wants it."""
        files = files or {"SKILL.md": skill_md(name)}
        entry = entry_of(name, files, fields)
        self.skills.append(entry)
        self.gets[entry["uri"]] = entry
        self.reads |= {f"skill://{name}/{path}": contents_of(f"skill://{name}/{path}", d) for path, d in files.items()}
        return entry

    def command(self) -> list[str]:
        """What starts the server as it is planned now."""
        keys = ("extension", "skills", "reads", "gets", "listing", "reading", "start")
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({key: getattr(self, key) for key in keys}), encoding="utf-8")
        return [sys.executable, "-I", str(SCRIPT), str(plan), str(self.log)]

    @property
    def log(self) -> Path:
        return self.folder / "asked.jsonl"

    def asked(self) -> list[tuple[str, str]]:
        """Every request so far: its method, and the address in it."""
        if not self.log.exists():
            return []
        rows = [json.loads(row) for row in self.log.read_text(encoding="utf-8").splitlines()]
        return [(row["method"], (row.get("params") or {}).get("uri", "")) for row in rows]
