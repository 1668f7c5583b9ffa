"""Model Context Protocol server over the HTTP API of a running service (docs/mcp.md). Needs `cambist[mcp]`."""
