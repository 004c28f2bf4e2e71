"""Declaration of the agent under whose name runs of clients are listed."""

from __future__ import annotations

from mleredux_agents import session_agent

agent = session_agent("mcp", "Model Context Protocol clients (`mleredux mcp`)")
