"""Skills of an MCP server: announced by its listing, read when they are needed, checked at each read."""
