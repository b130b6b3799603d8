"""The MCP server over HTTP: who may ask, how much, and how connections and sessions end."""
