"""The source of skills of an MCP server: they are listed first, read when needed, and checked at each read."""

EXTENSION = "io.modelcontextprotocol/skills"
"""The name of MCP's extension for skills, for servers and for clients."""
