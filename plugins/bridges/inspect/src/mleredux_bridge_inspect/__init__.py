"""Tasks for Inspect; `registry` imports Inspect and registers all tasks, the sandbox, the solvers and the scorers."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """Return the agent that gives its name to samples whose solver works in the sandbox."""
    return [Ref("inspect", f"{__name__}.agent:agent")]
