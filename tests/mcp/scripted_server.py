"""``scripted_server.py PLAN LOG``: an MCP server on stdio that answers as planned, and writes down what it is asked.

It uses nothing but the standard library, so that it can break every rule.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

PLAN: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
PAGES = itertools.count(1)


def discovered() -> dict[str, Any]:
    extensions: dict[str, object] = {"io.modelcontextprotocol/skills": {}} if PLAN["extension"] else {}
    capabilities = {"resources": {}, "extensions": extensions}
    return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "instructions": "evil", **FRESH}


def listed() -> dict[str, Any]:
    behave(PLAN["listing"])
    page = next(PAGES)
    if page > PLAN["listing"].get("hang_after", page):
        time.sleep(600)
    if "file" in PLAN["listing"]:  # whatever a test wrote there by now
        return json.loads(Path(PLAN["listing"]["file"]).read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    if "fat" in PLAN["listing"]:
        return {"skills": [fat(f"s{page}-{n}") for n in range(10)], "nextCursor": f"page-{page}", **FRESH}
    if "hollow" in PLAN["listing"]:
        return {"skills": [{}] * PLAN["listing"]["hollow"], **FRESH}
    if PLAN["listing"].get("endless"):
        return {"skills": PLAN["skills"] if page == 1 else [], "nextCursor": f"page-{page}", **FRESH}
    if PLAN["listing"].get("loop"):
        return {"skills": PLAN["skills"], "nextCursor": "again", **FRESH}
    return {"skills": PLAN["skills"], **FRESH}


def fat(name: str) -> dict[str, Any]:
    """An entry that nothing is wrong with and that takes a megabyte."""
    paths = ["SKILL.md", *(f"{number}/{'/'.join(['y' * 200] * 9)}" for number in range(511))]
    rows = [{"uri": f"skill://{name}/{path}", "digest": f"sha256:{'0' * 64}", "size": 0} for path in paths]
    front = {"name": name, "description": "Does it."}
    return {"uri": f"skill://{name}/SKILL.md", "frontmatter": front, "resources": rows}


def behave(how: dict[str, Any]) -> None:
    if "meet" in how:  # say that one is here, and wait for the other
        Path(how["meet"][0]).touch()
        while not Path(how["meet"][1]).exists():
            time.sleep(0.01)
    time.sleep(how.get("slow", 0))
    if how.get("hang"):
        time.sleep(600)
    if how.get("die"):
        sys.exit(3)
    for _ in range(how.get("flood", 0)):
        sys.stdout.write("x" * 1_000_000)
        sys.stdout.flush()


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "server/discover":
        behave(PLAN["start"])
        return discovered()
    if method == "skills/list":
        return listed()
    if method == "skills/get":
        found = PLAN["gets"].get(params.get("uri"))
        return {"skill": found, **FRESH} if found is not None else None
    if method == "resources/read":
        behave(PLAN["reading"])
        found = PLAN["reads"].get(params.get("uri"))
        return dict(found) if found is not None else None
    return None


def main() -> None:
    with Path(sys.argv[2]).open("a", encoding="utf-8") as log:
        for line in sys.stdin:
            message = json.loads(line)
            log.write(json.dumps({"method": message.get("method"), "params": message.get("params")}) + "\n")
            log.flush()
            if "id" not in message:
                continue
            PLAN.update(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))  # a test may have planned anew
            result = answer(message["method"], message.get("params") or {})
            reply = {"result": result} if result is not None else {"error": {"code": -32602, "message": "no"}}
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
