# Generated from mleredux_client/_async by generate_sync.py. Change that, not this.
"""A matrix of runs on a service."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mleredux_client import calls
from mleredux_client._sync.http import Http
from mleredux_client._sync.polling import wait_until
from mleredux_client._sync.runs import Run
from mleredux_client.answers import parse
from mleredux_client.facts import ExperimentFacts
from mleredux_client.frames import RUN_COLUMNS, Listing, frame, run_row
from mleredux_client.models import ExperimentRecord

if TYPE_CHECKING:
    import pandas as pd


class Experiment(ExperimentFacts):
    """Runs that were asked for together: every agent at every task with every seed."""

    def __init__(self, http: Http, record: ExperimentRecord) -> None:
        super().__init__(record)
        self._http = http
        self._path = f"/v1/experiments/{calls.segment(record.id)}"

    @classmethod
    def _of(cls, http: Http, document: Any) -> Experiment:
        return cls(http, parse(ExperimentRecord, document))

    @property
    def runs(self) -> Listing[Run]:
        """Its runs as they were when the service was last asked; one of a list has them after `refresh`."""
        return Listing(Run(self._http, record) for record in self.record.runs)

    def refresh(self) -> Experiment:
        """Ask how it stands."""
        self.record = parse(ExperimentRecord, self._http.json(calls.get(self._path)))
        return self

    def wait(
        self, timeout: float | None = None, *, progress: Callable[[Experiment, str], object] | None = None
    ) -> Experiment:
        """Wait until all its runs are final, well or badly.

        Args:
            timeout: Seconds; for ever where None.
            progress: Told how many runs are where (`3 done, 1 running`), whenever that changes.

        Raises:
            WaitTimeout: It took longer; the runs go on.
        """

        def seen(document: Any) -> bool:
            before = self.describe()
            self.record = parse(ExperimentRecord, document)
            if progress is not None and (now := self.describe()) != before:
                progress(self, now)
            return self.finished

        if progress is not None:
            progress(self, self.describe())
        wait_until(self._http, self._path, seen, timeout=timeout, what=f"Experiment {self.id}")
        return self

    def cancel(self) -> Experiment:
        """Stop all its runs."""
        self.record = parse(ExperimentRecord, self._http.json(calls.act(f"{self._path}/cancel")))
        return self

    def to_dataframe(self) -> pd.DataFrame:
        """One row a run, as they were when the service was last asked."""
        return frame((run_row(record) for record in self.record.runs), RUN_COLUMNS)
