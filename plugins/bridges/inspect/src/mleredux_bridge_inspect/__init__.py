"""Tasks for Inspect; `registry` imports it and registers every task, the sandbox, the solver and the scorers."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """The agent under whose name samples are listed whose solver works in the sandbox."""
    return [Ref("inspect", f"{__name__}.agent:agent")]
