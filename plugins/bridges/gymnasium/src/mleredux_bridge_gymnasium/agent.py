"""Declaration of the agent under whose name episodes are listed."""

from __future__ import annotations

from mleredux_agents import session_agent

agent = session_agent("gymnasium", "Policies that act in a Gymnasium environment")
