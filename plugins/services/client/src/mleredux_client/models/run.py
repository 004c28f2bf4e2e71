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


class QueuePlace(Model):
    """A queued run's place in the queue."""

    position: int
    """Position in the queue; 1: it is expected to start next."""
    starts_in: float | None = None
    """Estimated seconds until it starts, from the durations of earlier runs; None: too far in the future to
    estimate."""


class RunRecord(Model):
    """The server's record of a run."""

    id: str
    """The id of the run."""
    task: str
    """Id of the task."""
    agent: str
    """Id of the agent, or its pinned reference."""
    sandbox: str | None = None
    """Id of the sandbox."""
    seed: int = 0
    """The seed that the agent receives."""
    network: str | None = None
    """The network access of the agent."""
    limits: dict[str, Any] = {}
    """The limits of the run, by name."""
    options: dict[str, Any] = {}
    """The options of the agent."""
    obfuscated: bool = False
    """Whether the agent gets the description without the competition's name and story."""
    labels: dict[str, str] = {}
    """Labels, by name."""
    notes: str | None = None
    """Free text by users."""
    pinned: bool = False
    """Whether retention rules do not apply to it."""
    project: str | None = None
    """Id of the project."""
    user: str | None = None
    """The user who requested the run."""
    experiment: str | None = None
    """Id of the experiment, if the run belongs to one."""
    arm: str | None = None
    """The experiment's arm, if it has a plan."""
    retry_of: str | None = None
    """Id of the run that this one repeats."""
    priority: int = 0
    """Runs with a higher number start first."""
    preemptible: bool = False
    """Whether the scheduler may interrupt the run for others."""
    status: str
    """The state of the run."""
    cause: str | None = None
    """Why the run failed: `agent_crashed`, `out_of_memory`, …"""
    message: str | None = None
    """One sentence about why it failed, if it did."""
    waiting_for: str | None = None
    """Why the run is still queued."""
    score: float | None = None
    """The score of the submission."""
    medal: str | None = None
    """`gold`, `silver`, `bronze` or None."""
    verdict: str | None = None
    """Whether the result can be trusted: `verified`, `not reproducible`, `not checked`, `score given` or `tainted`."""
    valid: bool | None = None
    """Whether the submission could be scored."""
    percentile: float | None = None
    """The share of the leaderboard, in percent, that the score beats."""
    seconds: float | None = None
    """The agent's run time."""
    paused_seconds: float | None = None
    """How many of these seconds the run's clock was paused, because no provider of language models was available."""
    tokens: int | None = None
    """Input and output tokens of its last attempt."""
    cost_usd: float | None = None
    """The cost of its LLM calls."""
    created_at: datetime | None = None
    """When the run was requested, in UTC."""
    started_at: datetime | None = None
    """When the run left the queue, in UTC."""
    ended_at: datetime | None = None
    """When the run became final, in UTC."""
    updated_at: datetime | None = None
    """When the record last changed, in UTC."""
    report: Report | None = None
    """The grading report; in lists, None."""
    queue: QueuePlace | None = None
    """Its place in the queue, while it is queued; None in lists."""


class ExperimentRecord(Model):
    """The server's record of an experiment: a matrix of runs."""

    id: str
    name: str | None = None
    project: str | None = None
    user: str | None = None
    created_at: datetime | None = None
    counts: dict[str, int] = {}
    """Number of runs by status."""
    plan: dict[str, Any] | None = None
    """The plan that it was created from, if any, with its extensions."""
    changes: list[dict[str, Any]] = []
    """Later additions: `time`, `what`, and the number of `results` at that time."""
    spent: dict[str, float] | None = None
    """`cost_usd` and `hours` of the ended runs, if the plan has a budget."""
    stopped: str | None = None
    """Why queued runs were cancelled, if a budget is used up."""
    runs: list[RunRecord] = []


class LogFile(Model):
    """A log of a run."""

    name: str
    """The file name of the log."""
    size: int | None = None
    """Size in bytes."""


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
    """The environment of an agent, built ahead of its runs."""

    id: str
    agent: str
    """The pinned reference, for use in runs."""
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
