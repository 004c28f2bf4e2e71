"""Agents built from any git repository or folder: `--agent repo:https://host/team/agent.git@REF#subdir`.

| module | contents |
|---|---|
| `agents`, `references` | the agent of a reference; the parts of a reference |
| `sources`, `git`, `submodules`, `history`, `local`, `layers`, `trees` | folders and commits, fetched and read safely |
| `manifest`, `scripts`, `check_command` | the declaration of an agent; single scripts; the check of both |
| `environments`, `smoke` | Python environments for agents that run as processes; runs that agents must pass first |
| `watch`, `samples` | trying out agents: again when their files change, and on a sample of a task's rows |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.task import Task

mleredux_contract = 2
SCHEME = "repo:"


@hookimpl
def mleredux_register_schemes() -> list[Ref]:
    """Return the scheme of repositories, whose commits are pinned and whose manifests are read."""
    return [Ref("repo", "mleredux_agent_repo.agents:AGENTS")]


@hookimpl(tryfirst=True)
def mleredux_find_task(name: str) -> Task | None:
    """Return a task on a sample of its rows: `wine+debug-200`."""
    from mleredux.plugin.experiment import sampled

    if (sample := sampled(name)) is None:
        return None
    from mleredux.plugin.command import current

    from mleredux_agent_repo.samples import sample_of

    return sample_of(current().task(sample[0]), sample[1])


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """Return `mleredux agent check`, and the command behind `mleredux run --watch`."""
    return [
        Ref("agent check", "mleredux_agent_repo.check_command:command"),
        Ref("run watch", "mleredux_agent_repo.watch:command", {"title": "Run again when files change."}),
    ]
