# Generated from mleredux_client/_async by generate_sync.py. Change that, not this.
"""A matrix of runs on a service."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mleredux_client import calls
from mleredux_client._sync.resources import Resource
from mleredux_client._sync.runs import Run
from mleredux_client.facts import ExperimentFacts
from mleredux_client.frames import RUN_COLUMNS, Listing, frame, run_row
from mleredux_client.models import ExperimentRecord

if TYPE_CHECKING:
    import pandas as pd


class Experiment(ExperimentFacts, Resource[ExperimentRecord]):
    """Runs that were asked for together: every agent at every task with every seed."""

    @property
    def runs(self) -> Listing[Run]:
        """Its runs as they were when the service was last asked; one of a list has them after `refresh`."""
        return Listing(Run(self._http, record) for record in self.record.runs)

    def cancel(self) -> Experiment:
        """Stop all its runs."""
        return self._said(self._http.json(calls.act(f"{self._path}/cancel")))

    def extend(self, *, tasks: Iterable[str] = (), seeds: Iterable[int] = ()) -> Experiment:
        """Add tasks (or sets as `set:NAME`) and seeds to an experiment that was created from a plan."""
        body = {"tasks": list(tasks), "seeds": list(seeds)}
        return self._said(self._http.json(calls.create(f"{self._path}/extend", body)))

    def retry(self) -> Experiment:
        """Retry what was cancelled, or broken by the environment or the task; earlier attempts are kept."""
        return self._said(self._http.json(calls.act(f"{self._path}/retry")))

    def analysis(self, measure: str | None = None) -> dict[str, Any]:
        """The analysis of the runs that have ended, as `mleredux experiment analyse --json` prints it.

        Args:
            measure: Another than the plan's primary measure.

        Raises:
            NotFound: The server has no `mleredux-experiments`.
        """
        found: dict[str, Any] = self._http.json(calls.get(f"{self._path}/analysis", {"measure": measure}))
        return found

    def table(self) -> dict[str, Any]:
        """The table of the runs that have ended, with versions and failures, from which they can be analysed here.

        `mleredux_experiments.results.Results.of` reads it.

        Raises:
            NotFound: The server has no `mleredux-experiments`.
        """
        found: dict[str, Any] = self._http.json(calls.get(f"{self._path}/table"))
        return found

    def to_dataframe(self) -> pd.DataFrame:
        """One row a run, as they were when the service was last asked."""
        return frame((run_row(record) for record in self.record.runs), RUN_COLUMNS)
