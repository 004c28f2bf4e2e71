"""Tasks as Gymnasium environments; `environment` imports Gymnasium and registers `mleredux/Task-v0`."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """Return the agent under whose name episodes are listed."""
    return [Ref("gymnasium", f"{__name__}.agent:agent")]
