"""The sources of skills: folders, text in a program, installs, sites, MCP servers, and a file that lists sources."""
