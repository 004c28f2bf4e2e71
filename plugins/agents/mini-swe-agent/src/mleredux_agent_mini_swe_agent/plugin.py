"""Plugin that registers the agent."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """Return the agent, which is imported on use."""
    return [Ref("mini-swe-agent", "mleredux_agent_mini_swe_agent.agent:agent")]
