"""Declaration of the agent under whose name samples are listed whose solver works in the sandbox."""

from __future__ import annotations

from mleredux_agents import session_agent

agent = session_agent("inspect", "Solvers of Inspect (`inspect eval mleredux/TASK`)")
