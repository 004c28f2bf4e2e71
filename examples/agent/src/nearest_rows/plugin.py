"""What this package registers: an agent."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """The agent, imported when it is used."""
    return [Ref("nearest-rows", "nearest_rows.agent:agent")]
