"""Runs, their output, and other work of a server."""

from __future__ import annotations

from typing import Any

import mleredux_http_api as api
from mleredux import models
from mleredux.models.formats import facts

from mleredux_client.markup import escaped, pairs
from mleredux_client.models.base import Model

FINAL = frozenset(str(state) for state in models.State if state.final)


class State(str):
    """A run's state as text: `queued`, `preparing`, `building`, `running`, `grading`, `producing`, `done`, `failed`,
    `timed_out`, `cancelled`, or a state of a newer server."""

    __slots__ = ()

    @property
    def final(self) -> bool:
        """Whether the state is final."""
        return self in FINAL


class Report(models.Report):
    """The report of a graded submission, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        return f"<div><b>Report on {escaped(self.competition_id)}</b>{pairs(dict(facts(self)))}</div>"


class QueuePlace(Model, api.QueuePlace):
    """A queued run's place in the queue."""


class RunRecord(Model, api.RunView):
    """The server's record of a run."""

    report: Report | None = None
    """The grading report; in lists, None."""
    queue: QueuePlace | None = None
    """Its place in the queue, while it is queued; None in lists."""


class ExperimentRecord(Model, api.ExperimentView):
    """The server's record of an experiment: a matrix of runs."""

    plan: dict[str, Any] | None = None
    """The plan that it was created from, if any, with its extensions."""
    changes: list[dict[str, Any]] = []
    """Later additions: `time`, `what`, and the number of `results` at that time."""
    spent: dict[str, float] | None = None
    """`cost_usd` and `hours` of the ended runs, if the plan has a budget."""
    stopped: str | None = None
    """Why queued runs were cancelled, if a budget is used up."""
    runs: list[RunRecord] = []


class LogFile(Model, api.LogView):
    """A log of a run."""


class SubmissionRecord(Model, api.SubmissionView):
    """Predictions submitted without an agent."""

    report: Report | None = None


class BuildRecord(Model, api.BuildView):
    """The environment of an agent, built ahead of its runs."""
