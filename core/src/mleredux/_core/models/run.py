"""Runs: what was asked, what was used, what happened, what is left."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from mleredux._core.models.agent import Limits, Network
from mleredux._core.models.base import Model


class State(StrEnum):
    """A run's state; see `TRANSITIONS` in `mleredux._core.store.states` for which follows which."""

    QUEUED = "queued"
    PREPARING = "preparing"
    BUILDING = "building"
    RUNNING = "running"
    GRADING = "grading"
    PRODUCING = "producing"
    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether nothing follows."""
        return self in (State.DONE, State.FAILED, State.TIMED_OUT, State.CANCELLED)


class Cause(StrEnum):
    """Why a run failed."""

    AGENT_CRASHED = "agent_crashed"
    AGENT_TIMED_OUT = "agent_timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    OUT_OF_DISK = "out_of_disk"
    ENVIRONMENT_BROKE = "environment_broke"
    TASK_BROKEN = "task_broken"
    CANCELLED = "cancelled"


class CausePolicy(NamedTuple):
    """What follows from a cause."""

    retried: bool
    """Whether the stage is tried once more before the run fails."""
    counts: bool
    """Whether the run counts against the agent."""
    meaning: str


CAUSES: dict[Cause, CausePolicy] = {
    Cause.AGENT_CRASHED: CausePolicy(False, True, "the agent's command ended with an error"),
    Cause.AGENT_TIMED_OUT: CausePolicy(False, True, "the agent was stopped at its time limit"),
    Cause.OUT_OF_MEMORY: CausePolicy(False, True, "the agent needed more memory than its limit"),
    Cause.OUT_OF_DISK: CausePolicy(False, True, "the agent wrote more than its disk limit"),
    Cause.ENVIRONMENT_BROKE: CausePolicy(True, False, "the sandbox failed, not the agent"),
    Cause.TASK_BROKEN: CausePolicy(False, False, "the task's data or grader failed, not the agent"),
    Cause.CANCELLED: CausePolicy(False, False, "somebody stopped the run"),
}
"""What follows from each cause: whether the stage is tried again, and whether the run counts against the agent."""


class Outcome(Model):
    """How the agent's work ended."""

    exit_code: int | None = None
    signal: int | None = None
    cause: Cause | None = None
    """None where the agent ended by itself with exit code 0."""
    limit: str | None = None
    """Which limit ended it: time, memory, disk, processes."""
    message: str | None = None
    seconds: float = 0.0
    max_memory_mb: float | None = None
    cpu_seconds: float | None = None


class NotSubmitted(Model):
    """There is no submission."""

    problem: ClassVar[str] = "does not exist"


class Unusable(Model):
    """There is something in the submission's place that can't be graded: a link, a folder, a file too large."""

    problem: str
    """The end of a sentence that starts with the file's name."""


Submitted = Path | NotSubmitted | Unusable
"""What was submitted: a regular file, or what is there in its place."""


class Attempts(Model):
    """What a run's log says of its agents that were started so far."""

    unfinished: bool = False
    """Whether the last attempt was neither given up nor recorded as the stage's result: it is gone on with."""
    outcome: Outcome | None = None
    """How that attempt ended, where it has."""
    started: bool = False
    """Whether any agent was ever started."""
    monotonic: float | None = None
    """When the last agent was started, by the monotonic clock."""


class RunSpec(Model):
    """What was asked."""

    id: str
    task: str
    agent: str
    sandbox: str
    seed: int
    limits: Limits
    network: Network = "none"
    options: dict[str, Any] = {}
    """Agent options given for this run."""
    obfuscated: bool = False
    data_dir: str
    context: str | None = None
    """Further text for the agent, where given."""
    project: str | None = None
    """Whose it is, where several share a runs directory: plugins tell of a run only to those of the same project."""
    created_at: datetime


class RunUse(Model):
    """What was used; a run goes on only with the same."""

    task_version: str | None = None
    task_data: str | None = None
    """Digest of the prepared files' record."""
    agent_version: str | None = None
    image: str | None = None
    """Identity of the agent's environment: an image digest, or that of the interpreter's packages."""
    packages: dict[str, str] = {}
    """Versions of mleredux and its plugins."""
    python: str | None = None
    git_commit: str | None = None
    host: str | None = None


class RunRecord(Model):
    """`run.json`."""

    spec: RunSpec
    use: RunUse = RunUse()


class Artifact(Model):
    """A file of a run that is listed in its manifest."""

    path: str
    """Relative to the run directory, with `/`; bytes that are not UTF-8 as backslash escapes."""
    media_type: str = "application/octet-stream"
    size: int = 0
    sha256: str | None = None
    producer: str
    """`agent`, `mleredux`, or the plugin that made it."""
    title: str | None = None


class Manifest(Model):
    """`artifacts.json`: every file that is kept, and what was left out and why."""

    run: str
    artifacts: tuple[Artifact, ...] = ()
    left_out: tuple[dict[str, str], ...] = ()
    """`{"path": …, "reason": …}`; at most 1,000 named, the rest counted in a last entry."""
