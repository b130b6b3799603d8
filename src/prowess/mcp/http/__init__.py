"""The MCP server over HTTP: who may ask, how much, and when connections and sessions end."""
