"""The pages of experiments: the list, and one as it fills."""

from __future__ import annotations

from typing import Any

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.artifact import Run, RunStore
from mleredux.plugin.command import current
from mleredux.plugin.page import Visit

from mleredux_experiments.estimate import estimate
from mleredux_experiments.execution import Execution, Place
from mleredux_experiments.pages.compare import analysis_of, record_of, shown
from mleredux_experiments.record import FOLDER, RECORD_FILE
from mleredux_experiments.sources import runs_below


def experiments(visit: Visit) -> dict[str, Any]:
    """All experiments, by name."""
    folder = visit.folder
    paths = sorted(folder.glob(f"{FOLDER}/*/{RECORD_FILE}")) if folder else []
    found, damaged = [], []
    for path in paths:
        try:
            if record := record_of(visit, path.parent.name):
                found.append((path.parent.name, record))
        except MlereduxError as error:
            damaged.append(error.message)
    return {"experiments": found, "damaged": damaged}


def experiment(visit: Visit) -> dict[str, Any]:
    """One experiment: its matrix, budget, estimate, deviations, and the analysis so far.

    Raises:
        NotFound: There is none of this name.
    """
    record = record_of(visit, visit.parts["name"])
    if record is None or visit.folder is None:
        raise NotFound(f"There is no experiment {visit.parts['name']!r}.", hint="See the list of experiments.")
    store = RunStore(visit.folder)
    execution = Execution(record, visit.folder / FOLDER / visit.parts["name"], store, current())
    places = execution.places()
    arms, seeds = (list(dict.fromkeys(getattr(one.cell, name) for one in places)) for name in ("arm", "seed"))
    matrix: dict[str, dict[tuple[str, int], Place]] = {}
    for one in places:
        matrix.setdefault(one.cell.task, {})[one.cell.arm, one.cell.seed] = one
    values: dict[str, Any] = {"analysis": None, "why": ""}
    try:
        if visit.text("part") == "runs":
            raise MlereduxError("Only the runs were asked for.")
        runs = [run["id"] for one in places for run in one.runs]
        values |= shown(analysis_of([visit.open(run).path for run in runs], record))
    except MlereduxError as error:
        values["why"] = error.message
    status = execution.status()
    return {
        "name": visit.parts["name"],
        "record": record,
        "status": status,
        "arms": arms,
        "seeds": seeds,
        "matrix": matrix,
        "budget": record.plan.stop,
        "estimate": estimate(record.plan, execution.planned, runs_below(store.path)),
        "peeking": record.plan.stop.rule != "sequential" and status["ended"] < status["total"],
        **values,
    }


def panel(visit: Visit, run: Run) -> dict[str, Any] | None:
    """The experiment that a run belongs to, if its record is here."""
    name = run.spec.experiment
    return {"experiment": name, "arm": run.spec.arm} if name and record_of(visit, name) else None
