"""Runs and their logs, experiments, submissions and builds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from mleredux.models import Report
from mleredux.models.base import Open

from mleredux_http_api.base import Response


class RunView(Response):
    """A run."""

    id: str
    """The id of the run."""
    task: str
    """Id of the task."""
    agent: str
    """Id of the agent, or its pinned reference."""
    sandbox: str
    """Id of the sandbox."""
    seed: int
    """The seed that the agent receives."""
    network: str
    """The network access of the agent."""
    limits: dict[str, Any]
    """The limits of the run, by name."""
    options: dict[str, Any]
    """The options of the agent."""
    obfuscated: bool
    """Whether the agent gets the description without the competition's name and story."""
    labels: dict[str, str]
    """Labels, by name."""
    notes: str | None = None
    """Free text by users."""
    pinned: bool = False
    """Whether retention rules do not apply to it."""
    project: str
    """Id of the project."""
    user: str
    """The user who requested the run."""
    experiment: str | None
    """Id of the experiment, if the run belongs to one."""
    arm: str | None
    """The experiment's arm, if it has a plan."""
    retry_of: str | None
    """Id of the run that this one repeats."""
    priority: int
    """Runs with a higher number start first."""
    preemptible: bool = False
    """Whether the scheduler may interrupt the run for others."""
    status: str
    """The state of the run."""
    cause: str | None
    """Why the run failed: `agent_crashed`, `out_of_memory`, …"""
    message: str | None
    """One sentence about why it failed, if it did."""
    waiting_for: str | None
    """Why the run is still queued."""
    score: float | None
    """The score of the submission."""
    medal: str | None
    """`gold`, `silver`, `bronze` or None."""
    verdict: str | None
    """Whether the result can be trusted: `verified`, `not reproducible`, `not checked`, `score given` or `tainted`."""
    valid: bool | None
    """Whether the submission could be scored."""
    percentile: float | None
    """The share of the leaderboard, in percent, that the score beats."""
    seconds: float | None
    """The agent's run time."""
    paused_seconds: float | None
    """How many of these seconds the run's clock was paused, because no provider of language models was available."""
    tokens: int | None
    """Input and output tokens of its last attempt."""
    cost_usd: float | None
    """The cost of its LLM calls."""
    created_at: datetime
    """When the run was requested, in UTC."""
    started_at: datetime | None
    """When the run left the queue, in UTC."""
    ended_at: datetime | None
    """When the run became final, in UTC."""
    updated_at: datetime
    """When the record last changed, in UTC."""


class QueuePlace(Response):
    """A queued run's place in the queue."""

    position: int
    """Position in the queue; 1: it is expected to start next."""
    starts_in: float | None
    """Estimated seconds until it starts, from the durations of earlier runs; None: too far in the future to
    estimate."""


class LogView(Response):
    """A log of a run."""

    name: str
    """The file name of the log."""
    size: int
    """Size in bytes."""


class ExperimentView(Response):
    """A matrix of runs, without its runs."""

    id: str
    """The id of the experiment."""
    name: str
    """Its name."""
    project: str
    """Id of the project."""
    user: str
    """The user who requested it."""
    created_at: datetime
    """When it was requested, in UTC."""
    counts: dict[str, int]
    """Number of runs by status."""


class SubmissionView(Response):
    """Submitted predictions, with their grade once there is one."""

    id: str
    """The id of the submission."""
    task: str
    """Id of the task."""
    status: Annotated[Literal["queued", "grading", "done", "failed"], Open]
    """`queued`, `grading`, `done` or `failed`."""
    message: str | None
    """The current step, or why there is no grade."""
    report: Report | None
    """The grading report, once there is one."""
    size: int
    """Size in bytes."""
    sha256: str
    """Checksum of the file."""
    project: str
    """Id of the project."""
    user: str
    """The user who submitted it."""
    created_at: datetime
    """When it was submitted, in UTC."""
    ended_at: datetime | None
    """When it was graded, or failed, in UTC."""


class BuildView(Response):
    """An agent's environment, built ahead of its runs."""

    id: str
    """The id of the build."""
    agent: str
    """The reference as requested; once the build is ready, the pinned reference for use in runs."""
    sandbox: str
    """Id of the sandbox."""
    status: Annotated[Literal["queued", "building", "ready", "failed"], Open]
    """`queued`, `building`, `ready` or `failed`."""
    message: str | None
    """One sentence on why it failed."""
    image: str | None
    """Content digest of the environment."""
    cached: bool | None
    """Whether the environment already existed."""
    project: str
    """Id of the project."""
    user: str
    """The user who requested it."""
    created_at: datetime
    """When it was requested, in UTC."""
    ended_at: datetime | None
    """When it ended, in UTC."""
