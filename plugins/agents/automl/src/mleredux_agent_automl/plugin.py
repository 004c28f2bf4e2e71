"""What the package registers: the agent."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """The agent, imported when it is used."""
    return [Ref("automl", "mleredux_agent_automl.agent:agent")]
