"""An MCP server of your own, with skills beside its own tools.

Run it in the root of the repository: ``python -m examples.frameworks.mcp``.
"""

from typing import Any

from mcp.server.mcpserver import MCPServer

from prowess.adapters.mcp import Skills


def main() -> MCPServer[Any]:
    """Make a server. Its clients ask their person before a script runs."""
    server: MCPServer[Any] = MCPServer("orders", instructions="Tools for the orders of a shop.")

    @server.tool()
    def count_orders(year: int) -> int:
        """Count the orders of a year."""
        return {2025: 1234}.get(year, 0)

    return Skills("skills/", scripts=True).mount(server)


if __name__ == "__main__":
    main().run()
