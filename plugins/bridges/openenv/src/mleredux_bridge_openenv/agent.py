"""Declaration of the agent under whose name episodes are listed."""

from __future__ import annotations

from mleredux_agents import session_agent

agent = session_agent("openenv", "OpenEnv clients (`mleredux openenv`)")
