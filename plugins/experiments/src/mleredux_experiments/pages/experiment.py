"""The pages of experiments: the list, and a page that shows an experiment's progress."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.artifact import Run, RunStore
from mleredux.plugin.command import current
from mleredux.plugin.page import Download, StoredExperiment, Visit

from mleredux_experiments.execution.estimate import Estimate, estimate
from mleredux_experiments.execution.execution import Execution, Place
from mleredux_experiments.execution.record import FOLDER, RECORD_FILE
from mleredux_experiments.pages.compare import MOST_RUNS, analysis_of, image, readable, record_from, record_of, shown
from mleredux_experiments.results.sources import load_stamped, stamps_of

_MOST_PAST = 1_000


class Stored(Execution):
    """An experiment on a server, limited to the runs that a visitor may see; all runs exist, and the server executes
    them."""

    def __init__(self, visit: Visit, stored: StoredExperiment) -> None:
        super().__init__(record_from(stored), Path(), RunStore(Path()), current())
        self.planned = list(stored.cells)
        self._visit, self._rows = visit, visit.rows(MOST_RUNS, experiment=[stored.id])

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of its runs, the newest first."""
        return self._rows

    def is_alive(self, _run_id: str) -> bool:
        """Return whether a run that has not ended is being executed."""
        return True

    def ended(self) -> Iterator[Run]:
        """Yield its runs that have ended and can be read."""
        return map(Run, readable(self._visit, self.ended_rows()))


def experiments(visit: Visit) -> dict[str, Any]:
    """Return all experiments, by name."""
    folder = visit.folder
    named = [(entry.id, entry.title, record_from(entry)) for entry in visit.experiments()]
    paths = sorted(folder.glob(f"{FOLDER}/*/{RECORD_FILE}")) if folder else []
    damaged = []
    for path in paths:
        try:
            if record := record_of(visit, path.parent.name):
                named.append((path.parent.name, path.parent.name, record))
        except MlereduxError as error:
            damaged.append(error.message)
    return {"experiments": named, "damaged": damaged}


def experiment(visit: Visit) -> dict[str, Any] | Download:
    """Return an experiment: its matrix, budget, estimate, deviations, and the analysis so far.

    The analysis, which takes seconds, is the part `analysis` of the page, requested after the other parts are shown.
    Each plot is drawn when it is visible: `plot` in the URL selects it.

    Raises:
        NotFound: There is no experiment with this name, or no such plot.
    """
    title, execution = _opened(visit, visit.parts["name"])
    record = execution.record
    places = execution.places()
    arms, seeds = (list(dict.fromkeys(getattr(place.cell, name) for place in places)) for name in ("arm", "seed"))
    matrix: dict[str, dict[tuple[str, int], Place]] = {}
    for place in places:
        matrix.setdefault(place.cell.task, {})[place.cell.arm, place.cell.seed] = place
    values: dict[str, Any] = {"analysis": None, "why": "", "later": True}
    queued = [place for place in places if place.state == "running" and (place.current or {}).get("status") == "queued"]
    status, plot = execution.status(), visit.text("plot")
    if visit.static or plot or visit.text("part") == "analysis" or not status["ended"]:
        values["later"] = False
        try:
            analysis = analysis_of(readable(visit, (run for place in places for run in place.runs)), record)
        except MlereduxError as error:
            values["why"] = error.message
        else:
            if plot:
                return image(analysis, plot)
            address = None if visit.static else partial(visit.link, "experiments", visit.parts["name"])
            values |= shown(analysis, address)
    return {
        "name": visit.parts["name"],
        "title": title,
        "record": record,
        "status": status,
        "queued": len(queued),
        "arms": arms,
        "seeds": seeds,
        "matrix": matrix,
        "budget": record.plan.stop,
        "estimate": _estimate(visit, execution),
        "peeking": record.plan.stop.rule != "sequential" and status["ended"] < status["total"],
        **values,
    }


def _opened(visit: Visit, name: str) -> tuple[str, Execution]:
    """Open an experiment; return its title and the experiment."""
    if visit.folder is None:
        for stored in visit.experiments(name):
            return stored.title, Stored(visit, stored)
    elif (record := record_of(visit, name)) is not None:
        return record.name, Execution(record, visit.folder / FOLDER / name, RunStore(visit.folder), current())
    raise NotFound(f"There is no experiment {name!r}.", hint="See the list of experiments.")


def _estimate(visit: Visit, execution: Execution) -> Estimate:
    agents = {run.agent for _, run in execution.planned}
    past = readable(visit, visit.rows(_MOST_PAST, agent=agents, status=("done", "failed", "timed_out")))
    return estimate(execution.record.plan, execution.planned, load_stamped(stamps_of(past)))
