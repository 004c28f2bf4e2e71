"""Agents built from any git repository or folder: `--agent repo:https://host/team/agent.git@REF#subdir`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.agent import Agent

mleredux_contract = 2
SCHEME = "repo:"


@hookimpl
def mleredux_find_agent(reference: str) -> Agent | None:
    """Fetch the repository, pin its commit, and read the agent's manifest."""
    if not reference.startswith(SCHEME):
        return None
    from mleredux_agent_repo.agents import agent_of

    return agent_of(reference)


@hookimpl
def mleredux_list_history(reference: str, good: str, bad: str) -> list[str] | None:
    """List the commits between two of a repository."""
    if not reference.startswith(SCHEME):
        return None
    from mleredux_agent_repo.history import history

    return history(reference, good, bad)


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """`mleredux agent check`."""
    return [Ref("agent check", "mleredux_agent_repo.check_command:command")]
