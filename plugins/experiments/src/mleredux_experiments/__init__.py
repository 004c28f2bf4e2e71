"""Experiments: plans, statistics over runs, comparison of agents, leaderboards, power and reports.

| module | contents |
|---|---|
| `plan`, `record` | plan files, and `experiment.json`: the frozen plan with its deviations |
| `experiment`, `execution` | starting, extending and executing an experiment |
| `estimate` | what a plan will take, and what it can detect |
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
    "experiment check": ("commands.plan:check", "Check a plan: runs, time, cost, detectable difference."),
    "experiment run": ("commands.plan:run", "Run an experiment, or continue it."),
    "experiment status": ("commands.plan:status", "Show how far an experiment is."),
    "experiment extend": ("commands.plan:extend", "Add seeds or tasks to an experiment."),
    "experiment retry": ("commands.plan:retry", "Run again what the environment or the task broke."),
}
_HERE = {"experiment check", "experiment extend", "experiment retry"}
"""Commands that run on this machine only."""


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """The commands of this plugin, each imported when it is used."""
    return [
        Ref(name, f"{__name__}.{where}", {"title": title, "place": "here" if name in _HERE else "both"})
        for name, (where, title) in _COMMANDS.items()
    ]
