"""A FastMCP server of your own, with skills beside its own tools.

Run it in the root of the repository: ``python -m examples.frameworks.fastmcp``.
"""

from fastmcp import FastMCP

from prowess.adapters.fastmcp import Skills


def main() -> FastMCP:
    """Make a server. Its clients ask their person before a script runs."""
    server = FastMCP("orders", instructions="Tools for the orders of a shop.")

    @server.tool
    def count_orders(year: int) -> int:
        """Count the orders of a year."""
        return {2025: 1234}.get(year, 0)

    return Skills("skills/", scripts=True).mount(server)


if __name__ == "__main__":
    main().run()
