"""Declaration of the agent under whose name rollouts are listed."""

from __future__ import annotations

from mleredux_agents import session_agent

agent = session_agent("verifiers", "Models in a verifiers environment (`vf-eval`)")
