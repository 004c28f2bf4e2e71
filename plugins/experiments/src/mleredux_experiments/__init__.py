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

import tomllib
from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.page import Page, Panel

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the commands of this plugin, each imported on first use."""
    commands = tomllib.loads((files(__name__) / "commands.toml").read_text(encoding="utf-8"))
    return [Ref(name, f"{__name__}.{settings.pop('function')}", settings) for name, settings in commands.items()]


@hookimpl
def mleredux_register_pages() -> list[Page | Panel]:
    """Return the pages of experiments and of the comparison of selected runs."""
    from mleredux.plugin.page import Page, Panel

    single, other = f"{__name__}.pages.experiment", f"{__name__}.pages.compare"
    return [
        Page(path="/experiments", template="experiments.html.j2", function=f"{single}:experiments", menu="Experiments"),
        Page(path="/experiments/{name}", template="experiment.html.j2", function=f"{single}:experiment"),
        Page(path="/compare", template="compare.html.j2", function=f"{other}:compare", selection="Compare"),
        Panel(title="Experiment", template="panel.html.j2", function=f"{__name__}.pages.panel:panel"),
        Panel(title="Agents", template="agents.html.j2", function=f"{__name__}.pages.task:agents", place="task"),
    ]
