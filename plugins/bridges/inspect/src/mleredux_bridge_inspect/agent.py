"""Declaration of the agent that gives its name to samples whose solver works in the sandbox."""

from __future__ import annotations

from mleredux_agents import session_agent

agent = session_agent("inspect", "Inspect solvers (`inspect eval mleredux/TASK`)")
