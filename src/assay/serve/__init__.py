"""One server process for a team: HTTP API, live streams, an OpenAI-compatible endpoint, MCP and the web page."""
