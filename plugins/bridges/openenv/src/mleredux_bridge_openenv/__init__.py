"""Serve tasks as an OpenEnv environment: `mleredux openenv TASK`."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """Return the agent under whose name episodes are listed."""
    return [Ref("openenv", f"{__name__}.agent:agent")]


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the command `openenv`."""
    title = "Serve tasks as an OpenEnv environment."
    return [Ref("openenv", f"{__name__}.command:command", {"title": title, "section": "Run and grade"})]
