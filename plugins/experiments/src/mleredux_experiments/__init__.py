"""Experiments: plans, statistics over runs, comparison of agents, leaderboards, power and reports.

| module | contents |
|---|---|
| `results` | the table of runs: one row a run, from a runs folder, an experiment, a server or MLE-bench's reports |
| `measures` | what is measured of a run and of an agent: medals, percentile, cost, pass@k, medals over time |
| `inference` | errors, the paired comparison, power, sequential tests, ranking |
| `figures`, `report` | pictures, and the offline page with all of them |
"""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2

_COMMANDS = {
    "compare": ("commands.compare:command", "Compare two agents or arms, paired by task."),
    "leaderboard": (
        "commands.leaderboard:command",
        "Rank agents, with errors over seeds and over tasks.",
    ),
    "experiment": ("group:group", "Plan, run and analyse experiments."),
}


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """The commands of this plugin, each imported when it is used."""
    return [Ref(name, f"{__name__}.{where}", {"title": title}) for name, (where, title) in _COMMANDS.items()]
