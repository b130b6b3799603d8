"""The MCP server over HTTP: its application behind the guard, and the sessions of older clients."""
