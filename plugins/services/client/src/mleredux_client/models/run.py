"""Runs, their output, and other work of a server."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mleredux import models
from mleredux.models.formats import facts

from mleredux_client.markup import escaped, pairs
from mleredux_client.models.base import Model

FINAL = frozenset(str(state) for state in models.State if state.final)


class State(str):
    """A run's state, a plain text: `queued`, `preparing`, `building`, `running`, `grading`, `producing`, `done`,
    `failed`, `timed_out`, `cancelled`, or what a newer server says."""

    __slots__ = ()

    @property
    def final(self) -> bool:
        """Whether nothing follows."""
        return self in FINAL


class Report(models.Report):
    """The report of a graded submission, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        return f"<div><b>Report on {escaped(self.competition_id)}</b>{pairs(dict(facts(self)))}</div>"


class QueuePlace(Model):
    """A queued run's place."""

    position: int
    """1: it is expected to start next."""
    starts_in: float | None = None
    """Seconds until it is expected to start, by the durations of earlier runs; None: too far away to tell."""


class RunRecord(Model):
    """A run as the service tells it."""

    id: str
    task: str
    agent: str
    sandbox: str | None = None
    seed: int = 0
    network: str | None = None
    limits: dict[str, Any] = {}
    options: dict[str, Any] = {}
    obfuscated: bool = False
    labels: dict[str, str] = {}
    notes: str | None = None
    pinned: bool = False
    """Whether retention rules do not apply to it."""
    project: str | None = None
    """Id of the project."""
    user: str | None = None
    experiment: str | None = None
    arm: str | None = None
    """The experiment's arm, if it has a plan."""
    retry_of: str | None = None
    priority: int = 0
    preemptible: bool = False
    status: str
    cause: str | None = None
    message: str | None = None
    """One sentence on why it failed, where it did."""
    waiting_for: str | None = None
    """Why it is still queued."""
    score: float | None = None
    medal: str | None = None
    verdict: str | None = None
    """How far the result can be trusted: `verified`, `not reproducible`, `not checked` or `tainted`."""
    valid: bool | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    updated_at: datetime | None = None
    report: Report | None = None
    queue: QueuePlace | None = None
    """While it is queued; lists do not have it."""


class ExperimentRecord(Model):
    """An experiment as the service tells it: a matrix of runs."""

    id: str
    name: str | None = None
    project: str | None = None
    user: str | None = None
    created_at: datetime | None = None
    counts: dict[str, int] = {}
    """Runs by their status."""
    plan: dict[str, Any] | None = None
    """The plan that it was created from, if any, with its extensions."""
    changes: list[dict[str, Any]] = []
    """What was added later: `time`, `what`, and the number of `results` that there were."""
    spent: dict[str, float] | None = None
    """`cost_usd` and `hours` of the ended runs, if the plan has a budget."""
    stopped: str | None = None
    """Why queued runs were cancelled, if a budget is used up."""
    runs: list[RunRecord] = []


class LogFile(Model):
    """A log of a run."""

    name: str
    size: int | None = None


class SubmissionRecord(Model):
    """Predictions submitted without an agent."""

    id: str
    task: str
    status: str
    """`queued`, `grading`, `done` or `failed`."""
    message: str | None = None
    report: Report | None = None
    size: int | None = None
    sha256: str | None = None
    project: str | None = None
    user: str | None = None
    created_at: datetime | None = None
    ended_at: datetime | None = None


class BuildRecord(Model):
    """The environment of an agent, made ahead of its runs."""

    id: str
    agent: str
    """Pinned: to be used in runs."""
    sandbox: str | None = None
    status: str
    """`queued`, `building`, `ready` or `failed`."""
    message: str | None = None
    image: str | None = None
    cached: bool | None = None
    project: str | None = None
    user: str | None = None
    created_at: datetime | None = None
    ended_at: datetime | None = None
