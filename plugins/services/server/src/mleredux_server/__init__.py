"""The HTTP service of mleredux: `mleredux serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.agent import Agent

mleredux_contract = 2
__version__ = "0.2.0"


@hookimpl
def mleredux_find_agent(reference: str) -> Agent | None:
    """Find an agent that a user uploaded to this server."""
    if not reference.startswith("upload:"):
        return None
    from mleredux_server.uploaded import uploaded_agent

    return uploaded_agent(reference)


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """`serve` starts the service; `server` administers its database."""
    return [
        Ref("serve", "mleredux_server.cli.serve:command", {"title": "Start the HTTP service.", "section": "Servers"}),
        Ref(
            "server",
            "mleredux_server.cli.server:command",
            {"title": "Administer a service: users, tokens, projects.", "section": "Servers"},
        ),
    ]
