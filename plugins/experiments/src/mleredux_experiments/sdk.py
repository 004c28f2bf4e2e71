"""The Python API: `mleredux.experiment(plan).run().analyse().compare("v1", "v2")`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.models.formats import counted
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
    """An experiment in a runs folder, with the operations of `mleredux experiment` as methods that return values.

    Attributes:
        plan: The frozen plan.
        path: The folder with `experiment.json`.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    @property
    def plan(self) -> Plan:
        """Return the frozen plan, including extensions."""
        return self._execution.record.plan

    @property
    def path(self) -> Path:
        """Return the experiment's folder."""
        return self._execution.folder

    def run(self, *, jobs: int = 1) -> Experiment:
        """Execute all cells that have no result, each once; return the experiment.

        Raises:
            MlereduxError: Another process is executing the experiment.
        """
        self._execution.stop.clear()
        self._execution.run(jobs=jobs)
        return self

    def retry(self, *, jobs: int = 1) -> Experiment:
        """Rerun cells whose runs failed because of the environment or the task, and those without a result; return the
        experiment.
        """
        self._execution.stop.clear()
        self._execution.run(jobs=jobs, broken=True)
        return self

    def extend(self, *, tasks: Iterable[str] = (), seeds: Iterable[int] = ()) -> Experiment:
        """Add tasks (or sets as `set:NAME`) and seeds; `run` then executes the new runs."""
        extend(self._execution, tasks=tasks, seeds=seeds)
        return self

    def status(self) -> dict[str, Any]:
        """Return the progress, as printed by `mleredux experiment status --json`."""
        return self._execution.status()

    @property
    def results(self) -> Results:
        """Return the table of its runs."""
        from mleredux_experiments.results.sources import load

        return load(self.path, rollouts=True)

    @property
    def frame(self) -> pd.DataFrame:
        """Return one row per run."""
        return self.results.frame

    def analyse(self, measure: str | None = None) -> Analysis:
        """Analyze the runs so far; the first arm of the plan is the baseline.

        Args:
            measure: The measure, if it is not the plan's primary measure.

        Raises:
            MlereduxError: There are no runs, or they are not comparable.
        """
        return analysed(self.results, self.plan, measure, changes=self._execution.record.sentences)

    def __repr__(self) -> str:
        status = self.status()
        return f"Experiment({status['name']!r}, {status['ended']} of {counted(status['total'], 'run')} ended)"

    def _repr_html_(self) -> str:
        """Return the runs by arm as HTML, for notebooks."""
        status = self.status()
        columns = ("arm", "total", *(state for state in STATES if state == "ended" or status[state]))
        head = "".join(f"<th>{name}</th>" for name in columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(str(arm[name]))}</td>' for name in columns)}</tr>" for arm in status["arms"]
        )
        title = f"<b>{escape(status['name'])}</b> {escape(status['question'])}<br>"
        ended = f"{status['ended']} of {counted(status['total'], 'run')} ended"
        return f"<div>{title}{ended}<table><tr>{head}</tr>{rows}</table></div>"


def experiment(
    plan: Plan | Mapping[str, Any] | Path | str,
    *,
    runs_dir: Path | str | None = None,
    data_dir: Path | str | None = None,
) -> Experiment:
    """Freeze a plan, or open the experiment with its name.

    Args:
        plan: A plan, its fields as in a plan file, the path of a plan file, or the folder or name of an experiment.
        runs_dir: Folder for runs; None: the default folder.
        data_dir: Folder for data; None: the default folder.

    Raises:
        NotFound: The file, experiment, task or agent does not exist.
        MlereduxError: The plan cannot be executed here.
    """
    if isinstance(plan, Mapping):
        plan = with_contexts(make_plan(plan), current(), Path.cwd())
    execution = plan if isinstance(plan, Plan) else find(str(plan), str(runs_dir) if runs_dir else None, current())
    if isinstance(execution, Plan):
        execution = start(execution, current(), runs_dir=runs_dir, data_dir=data_dir)
    return Experiment(execution)


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
    """Analyze results as the plan specifies; other arguments override the plan."""
    from mleredux_experiments.analysis.analysis import analyse
    from mleredux_experiments.execution.sequence import as_planned

    if plan is None:
        from mleredux_experiments.results.uniformity import by_settings

        results = by_settings(results)
    if baseline is not None:
        results.arm(baseline)
    design = plan.experiment if plan is not None else None
    planned = list(plan.all_arms()) if plan is not None else []
    return analyse(
        results.under(plan),
        arms=list(dict.fromkeys([*([baseline] if baseline else []), *planned, *sorted(results.arms)])),
        **as_planned(plan, results, measure=measure, alpha=alpha, margin=margin, single=False),
        name=design.name if design else name,
        question=design.question if design else "",
        changes=changes,
        whole=whole,
    )
