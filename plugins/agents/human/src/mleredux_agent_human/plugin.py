"""What the package registers: the agent, also as `human:NAME`, and the commands for people."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.agent import Agent

mleredux_contract = 2
_NAMED = re.compile(r"human:[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """The agent, imported when it is used."""
    return [Ref("human", "mleredux_agent_human.agent:agent")]


@hookimpl
def mleredux_find_agent(reference: str) -> Agent | None:
    """The agent by a person's name: `human:ada`."""
    if not _NAMED.fullmatch(reference):
        return None
    from mleredux_agent_human.agent import named

    return named(reference)


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """`start`, `submit`, `finish`, and `runs release`."""
    names = {
        "start": ("start", "Work on a task yourself, as an agent sees it."),
        "submit": ("submit", "Submit a file in a workspace of `start`."),
        "finish": ("finish", "End the work in a workspace of `start`; show the grade."),
        "runs release": ("release", ""),
    }
    return [
        Ref(name, f"mleredux_agent_human.{module}:command", {"title": title, "section": "Run and grade"})
        for name, (module, title) in names.items()
    ]
