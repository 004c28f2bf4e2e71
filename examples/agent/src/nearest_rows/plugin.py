"""Plugin that registers an agent."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """Return the agent, which is imported on use."""
    return [Ref("nearest-rows", "nearest_rows.agent:agent")]
