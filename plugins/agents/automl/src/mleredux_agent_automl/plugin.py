"""Registration of the agent."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """Register the agent, which is imported when used."""
    return [Ref("automl", "mleredux_agent_automl.agent:agent")]
