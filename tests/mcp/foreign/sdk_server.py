"""``sdk_server.py ROOT``: a server of skills made with the official SDK alone, as somebody else would make one."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import yaml
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resources import FileResource
from mcp.shared.exceptions import MCPError

ROOT = Path(sys.argv[1])


def own_files() -> list[Path]:
    return sorted(ROOT.glob("*/SKILL.md"))


class GetParams(types.RequestParams):
    uri: str


def entry(folder: Path) -> dict[str, Any]:
    fields = yaml.safe_load((folder / "SKILL.md").read_text(encoding="utf-8").split("---")[1])
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    rows = [
        {
            "uri": uri_of(path),
            "digest": f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}",
            "size": path.stat().st_size,
        }
        for path in files
    ]
    return {"uri": uri_of(folder / "SKILL.md"), "frontmatter": fields, "resources": rows}


def uri_of(path: Path) -> str:
    return f"skill://{path.relative_to(ROOT).as_posix()}"


class Skills(Extension):
    identifier = "io.modelcontextprotocol/skills"

    def methods(self) -> list[MethodBinding]:
        paged = types.PaginatedRequestParams
        return [MethodBinding("skills/list", paged, self.listed), MethodBinding("skills/get", GetParams, self.got)]

    async def listed(self, _ctx: Any, _params: Any) -> dict[str, Any]:
        entries = [entry(path.parent) for path in own_files()]
        return {"skills": entries, "ttlMs": 0, "cacheScope": "private"}

    async def got(self, _ctx: Any, params: GetParams) -> dict[str, Any]:
        found = [path for path in own_files() if uri_of(path) == params.uri]
        if not found:
            raise MCPError(types.INVALID_PARAMS, "no such skill")
        return {"skill": entry(found[0].parent), "ttlMs": 0, "cacheScope": "private"}


def main() -> None:
    server = MCPServer("theirs", extensions=[Skills()])
    for path in sorted(ROOT.rglob("*")):
        if path.is_file():
            server.add_resource(FileResource(uri=uri_of(path), name=path.name, path=path, encoding=None))
    server.run()


if __name__ == "__main__":
    main()
