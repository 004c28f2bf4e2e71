"""Experiments: plans, statistics over runs, comparison of agents, leaderboards, power and reports.

| subpackage or module | contents |
|---|---|
| `results` | the table of runs, one row per run, and the measures of a run |
| `failures` | why runs fall short: rules, with the line that is evidence |
| `inference` | errors, the paired comparison, power, ranking |
| `analysis` | the analysis of all arms, as one value |
| `figures` | tables, plots, the report and exports |
| `execution` | plans, their estimates and execution, the stopping rule, bisection |
| `pages` | web pages of experiments and comparisons |
| `commands` | the command line |
| `shared` | the typed, stable functions that services and scripts import |
| `sdk` | the Python API: `mleredux.experiment` |

Data passes from `execution` (or any runs) through `results`, `inference` and `analysis` to `figures`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.page import Page, Panel

mleredux_contract = 2

_COMMANDS = {
    "compare": ("commands.compare:command", "Compare two agents or arms, paired by task."),
    "leaderboard": ("commands.leaderboard:command", "Rank agents, with errors over seeds and over tasks."),
    "power": ("commands.power:command", "Compute how many tasks and seeds detect a difference."),
    "runs failures": ("commands.failures:command", "Find out why runs failed or fell short."),
    "experiment": ("commands.group:group", "Plan, run and analyse experiments."),
    "experiment check": ("commands.plan:check", "Check a plan: runs, time, cost, detectable difference."),
    "experiment run": ("commands.plan:run", "Run an experiment, or continue it."),
    "experiment status": ("commands.plan:status", "Show an experiment's progress."),
    "experiment extend": ("commands.plan:extend", "Add seeds or tasks to an experiment."),
    "experiment familiarity": ("commands.familiarity:command", "Correlate familiarity of tasks with performance."),
    "regrade": ("commands.regrade:command", "Grade finished runs again, after a fix; all reports are kept."),
    "bisect": ("commands.bisect:command", "Find the commit that changed an agent's score."),
    "experiment retry": ("commands.plan:retry", "Repeat runs that failed because of the environment or the task."),
    "experiment analyse": ("commands.analyse:analyse_command", "Analyse an experiment, or a folder of runs."),
    "experiment report": ("commands.analyse:report_command", "Write an HTML page with all plots."),
    "experiment export": ("commands.analyse:export_command", "Export runs and tables (Parquet, CSV, LaTeX, Markdown)."),
    "experiment import": ("commands.imports:command", "Import MLE-bench grading reports, or submissions."),
}
_SERVER = {"compare", "leaderboard", "power", "experiment"} | {
    f"experiment {name}" for name in ("check", "run", "status", "extend", "retry", "analyse", "report", "export")
}
"""Commands that also work with a server."""


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the commands of this plugin, each imported on first use."""
    return [
        Ref(
            name,
            f"{__name__}.{where}",
            {
                "title": title,
                "place": "both" if name in _SERVER else "here",
                "section": "Common" if name == "compare" else "Compare",
            },
        )
        for name, (where, title) in _COMMANDS.items()
    ]


@hookimpl
def mleredux_register_pages() -> list[Page | Panel]:
    """Return the pages of experiments and of the comparison of selected runs."""
    from mleredux.plugin.page import Page, Panel

    one = f"{__name__}.pages.experiment"
    return [
        Page(path="/experiments", template="experiments.html.j2", function=f"{one}:experiments", menu="Experiments"),
        Page(path="/experiments/{name}", template="experiment.html.j2", function=f"{one}:experiment"),
        Page(
            path="/compare",
            template="compare.html.j2",
            function=f"{__name__}.pages.compare:compare",
            selection="Compare",
        ),
        Panel(title="Experiment", template="panel.html.j2", function=f"{__name__}.pages.panel:panel"),
        Panel(title="Agents", template="agents.html.j2", function=f"{__name__}.pages.task:agents", place="task"),
    ]
