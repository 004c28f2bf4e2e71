"""A matrix of runs on a service."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client._async.polling import wait_until
from mleredux_client._async.runs import AsyncRun
from mleredux_client.answers import parse
from mleredux_client.facts import ExperimentFacts
from mleredux_client.frames import RUN_COLUMNS, Listing, frame, run_row
from mleredux_client.models import ExperimentRecord

if TYPE_CHECKING:
    import pandas as pd


class AsyncExperiment(ExperimentFacts):
    """Runs that were asked for together: every agent at every task with every seed."""

    def __init__(self, http: AsyncHttp, record: ExperimentRecord) -> None:
        super().__init__(record)
        self._http = http
        self._path = f"/v1/experiments/{calls.segment(record.id)}"

    @classmethod
    def _of(cls, http: AsyncHttp, document: Any) -> AsyncExperiment:
        return cls(http, parse(ExperimentRecord, document))

    @property
    def runs(self) -> Listing[AsyncRun]:
        """Its runs as they were when the service was last asked; one of a list has them after `refresh`."""
        return Listing(AsyncRun(self._http, record) for record in self.record.runs)

    async def refresh(self) -> AsyncExperiment:
        """Ask how it stands."""
        self.record = parse(ExperimentRecord, await self._http.json(calls.get(self._path)))
        return self

    async def wait(
        self, timeout: float | None = None, *, progress: Callable[[AsyncExperiment, str], object] | None = None
    ) -> AsyncExperiment:
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
        await wait_until(self._http, self._path, seen, timeout=timeout, what=f"Experiment {self.id}")
        return self

    async def cancel(self) -> AsyncExperiment:
        """Stop all its runs."""
        self.record = parse(ExperimentRecord, await self._http.json(calls.act(f"{self._path}/cancel")))
        return self

    def to_dataframe(self) -> pd.DataFrame:
        """One row a run, as they were when the service was last asked."""
        return frame((run_row(record) for record in self.record.runs), RUN_COLUMNS)
