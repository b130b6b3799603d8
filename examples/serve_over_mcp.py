"""Serve a folder of skills over MCP, and use them from another program.

Both ends are Prowess here; either may be any other program that speaks the skills extension of MCP. It needs the extra
``mcp``. Run it: ``python examples/serve_over_mcp.py``.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

import prowess

SKILLS = Path(__file__).resolve().parent / "skills"


def main() -> None:
    """Start a server, list its skills beside one of our own, and load one as a model would."""
    # The program by its path: Python with -m would look for the package in the working folder first.
    program = Path(sysconfig.get_path("scripts"), "prowess")
    command = [str(program), "serve", str(SKILLS)]
    with prowess.Source.mcp("office", command=command) as server:
        own = prowess.Source.inline("greet", "Greets people. Use when somebody arrives.", "Say hello.")
        catalog = prowess.Catalog.from_sources([own, server])
        print(f"{len(catalog)} skills: {', '.join(catalog.names[:3])} …")
        toolset = prowess.Toolset(prowess.Session(catalog))
        answer = toolset.call("load_skill", {"name": "office:csv-report"})
        print("\n".join(answer.content.splitlines()[:4]))


if __name__ == "__main__":
    main()
