"""The Python API: `mleredux.experiment(plan).run().analyse().compare("v1", "v2")`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.plugin.command import current
from mleredux.plugin.experiment import Plan

from mleredux_experiments.execution.execution import STATES, Execution
from mleredux_experiments.execution.experiment import extend, find, start
from mleredux_experiments.execution.plan import make_plan, with_contexts

if TYPE_CHECKING:
    import pandas as pd

    from mleredux_experiments.analysis.analysis import Analysis
    from mleredux_experiments.results.table import Results


class Experiment:
    """An experiment in a runs folder: what `mleredux experiment` does, as values.

    Attributes:
        plan: The frozen plan.
        path: The folder with `experiment.json`.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    @property
    def plan(self) -> Plan:
        """The frozen plan, extensions included."""
        return self._execution.record.plan

    @property
    def path(self) -> Path:
        """The experiment's folder."""
        return self._execution.folder

    def run(self, *, jobs: int = 1) -> Experiment:
        """Execute all cells that have no result, each once; return the experiment.

        Raises:
            MlereduxError: Another process executes it.
        """
        self._execution.stop.clear()
        self._execution.run(jobs=jobs)
        return self

    def retry(self, *, jobs: int = 1) -> Experiment:
        """Rerun runs that the environment or the task broke, and those without a result."""
        self._execution.stop.clear()
        self._execution.run(jobs=jobs, broken=True)
        return self

    def extend(self, *, tasks: Iterable[str] = (), seeds: Iterable[int] = ()) -> Experiment:
        """Add tasks (or sets as `set:NAME`) and seeds; `run` then makes the new runs."""
        extend(self._execution, tasks=tasks, seeds=seeds)
        return self

    def status(self) -> dict[str, Any]:
        """How far it is, as `mleredux experiment status --json` prints it."""
        return self._execution.status()

    @property
    def results(self) -> Results:
        """The table of its runs."""
        from mleredux_experiments.results.sources import load

        return load(self.path, rollouts=True)

    @property
    def frame(self) -> pd.DataFrame:
        """One row a run."""
        return self.results.frame

    def analyse(self, measure: str | None = None) -> Analysis:
        """Analyse the runs so far; the first arm of the plan is the baseline.

        Args:
            measure: Another than the plan's primary measure.

        Raises:
            MlereduxError: There are no runs, or they are not comparable.
        """
        return analysed(self.results, self.plan, measure, changes=self._execution.record.told)

    def __repr__(self) -> str:
        told = self.status()
        return f"Experiment({told['name']!r}, {told['ended']} of {told['total']} runs ended)"

    def _repr_html_(self) -> str:
        """For notebooks: the runs by arm."""
        told = self.status()
        columns = ("arm", "total", *(state for state in STATES if state == "ended" or told[state]))
        head = "".join(f"<th>{name}</th>" for name in columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(str(arm[name]))}</td>' for name in columns)}</tr>" for arm in told["arms"]
        )
        title = f"<b>{escape(told['name'])}</b> {escape(told['question'])}"
        ended = f"{told['ended']} of {told['total']} runs ended"
        return f"<div>{title}<br>{ended}<table><tr>{head}</tr>{rows}</table></div>"


def experiment(
    plan: Plan | Mapping[str, Any] | Path | str,
    *,
    runs_dir: Path | str | None = None,
    data_dir: Path | str | None = None,
) -> Experiment:
    """Freeze a plan, or open the experiment of its name.

    Args:
        plan: A plan, its fields as in the file, the path of a plan file, or a folder or name of an experiment.
        runs_dir: Folder for runs; None: the default one.
        data_dir: Folder for data; None: the default one.

    Raises:
        NotFound: There is no such file, experiment, task or agent.
        MlereduxError: The plan is not possible here.
    """
    if isinstance(plan, Mapping):
        plan = with_contexts(make_plan(plan), current(), Path.cwd())
    found = plan if isinstance(plan, Plan) else find(str(plan), str(runs_dir) if runs_dir else None, current())
    if isinstance(found, Plan):
        found = start(found, current(), runs_dir=runs_dir, data_dir=data_dir)
    return Experiment(found)


def analysed(
    results: Results,
    plan: Plan | None,
    measure: str | None = None,
    *,
    baseline: str | None = None,
    margin: float | None = None,
    alpha: float | None = None,
    name: str = "Runs",
    changes: Sequence[str] = (),
    whole: bool = True,
) -> Analysis:
    """Analyse results as their plan says; what is given replaces what it says."""
    from mleredux_experiments.analysis.analysis import analyse
    from mleredux_experiments.execution.sequence import reading_alpha

    if plan is None:
        from mleredux_experiments.results.uniformity import by_settings

        results = by_settings(results)
    if baseline is not None:
        results.arm(baseline)
    design = plan.experiment if plan is not None else None
    same = design is not None and measure in (None, design.primary)
    planned = list(plan.all_arms()) if plan is not None else []
    return analyse(
        results,
        measure or (design.primary if design else "any_medal"),
        arms=list(dict.fromkeys([*([baseline] if baseline else []), *planned, *sorted(results.arms)])),
        margin=margin if margin is not None else design.margin if design and same else 0.0,
        alpha=alpha or (reading_alpha(plan, results) if plan is not None else 0.05),
        equivalence=bool(design and same and design.analysis == "equivalence"),
        name=design.name if design else name,
        question=design.question if design else "",
        changes=changes,
        whole=whole,
    )
