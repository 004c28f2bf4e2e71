"""A server for the Model Context Protocol that provides a task's tools to any client: `mleredux mcp TASK`."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """Return the agent under whose name runs of clients are listed."""
    return [Ref("mcp", f"{__name__}.agent:agent")]


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the command `mcp`."""
    title = "Serve a task's tools to a Model Context Protocol client."
    return [Ref("mcp", f"{__name__}.command:command", {"title": title, "section": "Run and grade"})]
