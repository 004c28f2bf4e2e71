"""Declaration of the agent under whose name runs of clients are listed."""

from __future__ import annotations

from mleredux_agents import session_agent

agent = session_agent("mcp", "Clients of the Model Context Protocol (`mleredux mcp`)")
