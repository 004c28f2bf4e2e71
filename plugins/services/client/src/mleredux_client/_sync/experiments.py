# Generated from mleredux_client/_async by generate_sync.py. Change that, not this.
"""A matrix of runs on a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    def to_dataframe(self) -> pd.DataFrame:
        """One row a run, as they were when the service was last asked."""
        return frame((run_row(record) for record in self.record.runs), RUN_COLUMNS)
