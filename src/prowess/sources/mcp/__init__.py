"""The source of skills of an MCP server: they are listed first, read when needed, and checked at each read."""
