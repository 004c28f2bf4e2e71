"""A matrix of runs on a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mleredux_client import calls
from mleredux_client._async.resources import AsyncResource
from mleredux_client._async.runs import AsyncRun
from mleredux_client.facts import ExperimentFacts
from mleredux_client.frames import RUN_COLUMNS, Listing, frame, run_row
from mleredux_client.models.run import ExperimentRecord

if TYPE_CHECKING:
    import pandas as pd


class AsyncExperiment(ExperimentFacts, AsyncResource[ExperimentRecord]):
    """Runs that were requested together: every agent on every task with every seed."""

    @property
    def runs(self) -> Listing[AsyncRun]:
        """Its runs, as of the last request; an experiment from a list has them after `refresh`."""
        return Listing(AsyncRun(self._http, record) for record in self.record.runs)

    async def cancel(self) -> AsyncExperiment:
        """Cancel all its runs."""
        return self._update(await self._http.json(calls.act(f"{self._path}/cancel")))

    async def extend(self, *, tasks: Iterable[str] = (), seeds: Iterable[int] = ()) -> AsyncExperiment:
        """Add tasks (or sets as `set:NAME`) and seeds to an experiment that was created from a plan."""
        body = {"tasks": list(tasks), "seeds": list(seeds)}
        return self._update(await self._http.json(calls.create(f"{self._path}/extend", body)))

    async def retry(self) -> AsyncExperiment:
        """Retry runs that were cancelled, or failed because of the environment or the task; earlier attempts are
        kept."""
        return self._update(await self._http.json(calls.act(f"{self._path}/retry")))

    async def analysis(self, measure: str | None = None) -> dict[str, Any]:
        """Return the analysis of the runs that have ended, as `mleredux experiment analyse --json` prints it.

        Args:
            measure: The measure; None: the plan's primary measure.

        Raises:
            NotFound: The server has no `mleredux-experiments`.
        """
        document: dict[str, Any] = await self._http.json(calls.get(f"{self._path}/analysis", {"measure": measure}))
        return document

    async def table(self) -> dict[str, Any]:
        """Return the table of the runs that have ended, with versions and failures, for local analysis.

        `mleredux_experiments.shared.Results.of` reads it.

        Raises:
            NotFound: The server has no `mleredux-experiments`.
        """
        document: dict[str, Any] = await self._http.json(calls.get(f"{self._path}/table"))
        return document

    def to_dataframe(self) -> pd.DataFrame:
        """Return a table with a row per run, as of the last request."""
        return frame((run_row(record) for record in self.record.runs), RUN_COLUMNS)
