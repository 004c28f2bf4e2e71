"""Runs: specification, environment, outcome and artifacts."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from mleredux.models.agent import Limits, Network
from mleredux.models.base import Model
from mleredux.models.grants import Grants


class State(StrEnum):
    """The state of a run."""

    QUEUED = "queued"
    """Waits for resources."""
    PREPARING = "preparing"
    """The data of the task is prepared."""
    BUILDING = "building"
    """The environment of the agent is built."""
    RUNNING = "running"
    """The agent works."""
    GRADING = "grading"
    """The submission is graded."""
    PRODUCING = "producing"
    """Artifacts are created from the agent's files."""
    DONE = "done"
    """Complete: the agent ended on its own, or with its budget, and its submission was graded."""
    FAILED = "failed"
    """Ended by a failure; the cause says whose."""
    TIMED_OUT = "timed_out"
    """The agent exceeded its time limit; its latest submission was graded."""
    CANCELLED = "cancelled"
    """Stopped by a user."""

    @property
    def final(self) -> bool:
        """Whether the state is final."""
        return self in (State.DONE, State.FAILED, State.TIMED_OUT, State.CANCELLED)


class Cause(StrEnum):
    """Why a run failed."""

    AGENT_CRASHED = "agent_crashed"
    """The agent ended with an error."""
    AGENT_TIMED_OUT = "agent_timed_out"
    """The agent exceeded its time limit."""
    OUT_OF_MEMORY = "out_of_memory"
    """The agent exceeded its memory limit."""
    OUT_OF_DISK = "out_of_disk"
    """The agent exceeded its disk limit."""
    ENVIRONMENT_BROKE = "environment_broke"
    """The sandbox failed, not the agent."""
    TASK_BROKEN = "task_broken"
    """The data or the grader of the task failed, not the agent."""
    CANCELLED = "cancelled"
    """A user stopped the run."""


class CausePolicy(NamedTuple):
    """The consequences of a cause."""

    retried: bool
    """Whether the stage is retried once before the run fails, unless its `limits.retries` say otherwise."""
    counts: bool
    """Whether the run counts against the agent."""
    meaning: str
    """The cause in words."""


CAUSES: dict[Cause, CausePolicy] = {
    Cause.AGENT_CRASHED: CausePolicy(False, True, "the agent's command ended with an error"),
    Cause.AGENT_TIMED_OUT: CausePolicy(False, True, "the agent was stopped at its time limit"),
    Cause.OUT_OF_MEMORY: CausePolicy(False, True, "the agent needed more memory than its limit"),
    Cause.OUT_OF_DISK: CausePolicy(False, True, "the agent wrote more than its disk limit"),
    Cause.ENVIRONMENT_BROKE: CausePolicy(True, False, "the sandbox failed, not the agent"),
    Cause.TASK_BROKEN: CausePolicy(False, False, "the task's data or grader failed, not the agent"),
    Cause.CANCELLED: CausePolicy(False, False, "the run was stopped by a user"),
}
"""The consequences of each cause: whether the stage is retried, and whether the run counts against the agent."""


class Outcome(Model):
    """How the agent ended."""

    exit_code: int | None = None
    """The exit code; None if a signal ended the agent."""
    signal: int | None = None
    """The number of the signal that ended the agent."""
    cause: Cause | None = None
    """None if the agent ended on its own with exit code 0, or where its budget was to end it."""
    limit: str | None = None
    """The limit that ended it: time, memory, disk, processes, or a budget for language models."""
    message: str | None = None
    """One sentence on the cause."""
    seconds: float = 0.0
    """Seconds that the agent ran."""
    max_memory_mb: float | None = None
    """The most memory in use at a time, in MiB."""
    cpu_seconds: float | None = None
    """CPU seconds used."""


class NotSubmitted(Model):
    """There is no submission."""

    problem: ClassVar[str] = "does not exist"
    """The end of a sentence that starts with the file's name."""


class Unusable(Model):
    """The submission's path holds something that can't be graded: a link, a folder, a file that is too large."""

    problem: str
    """The end of a sentence that starts with the file's name."""


Submitted = Path | NotSubmitted | Unusable
"""What was submitted: a regular file, or what was found in its place."""


class Attempts(Model):
    """The agents of a run started so far, according to its event log."""

    unfinished: bool = False
    """Whether the last attempt was neither abandoned nor recorded as the stage's result, and is therefore continued."""
    outcome: Outcome | None = None
    """How that attempt ended, if it has."""
    started: bool = False
    """Whether any agent was ever started."""
    monotonic: float | None = None
    """When the last agent was started, by the monotonic clock."""


class RunPlan(Model):
    """A run that can be created: its request, validated, with all defaults."""

    task: str
    """Id of the task."""
    agent: str
    """Id of the agent, or its reference."""
    sandbox: str
    """Id of the sandbox."""
    seed: int
    """The seed that the agent receives."""
    limits: Limits
    """All limits, with defaults."""
    network: Network = "none"
    """The network access."""
    grants: Grants = Grants()
    """What the agent gets beyond its sandbox, and the hosts it may reach."""
    options: dict[str, Any] = {}
    """Agent options given for this run."""
    obfuscated: bool = False
    """Whether the agent gets the description without the competition's name and story."""
    context: str | None = None
    """Additional text for the agent, if given."""
    replay: str | None = None
    """The run in the same directory whose recorded answers of language models are given; None: models are asked."""
    verify: bool = False
    """Whether the final code is executed again after grading, to verify the result."""
    project: str | None = None
    """The owner, if several projects share a runs directory: plugins reveal a run only within its project."""
    experiment: str | None = None
    """The experiment that the run belongs to, if any."""
    arm: str | None = None
    """The experiment's arm."""


class RunSpec(RunPlan):
    """The specification of a run, as requested."""

    id: str
    """The id of the run, which is also the name of its folder."""
    data_dir: str
    """The folder of prepared data."""
    created_at: datetime
    """When the run was requested, in UTC."""


class RunUse(Model):
    """The environment of a run; a run is resumed only with the same one."""

    task_version: str | None = None
    """The version of the task."""
    task_data: str | None = None
    """Digest of the prepared files' record."""
    agent_version: str | None = None
    """The version of the agent."""
    image: str | None = None
    """Identity of the agent's environment: the digest of an image, or of the interpreter's packages."""
    packages: dict[str, str] = {}
    """Versions of mleredux and its plugins."""
    tools: dict[str, str] = {}
    """The SHA-256 of each tool that the agent was given, its declaration and its files, by id."""
    python: str | None = None
    """The version of Python that executed the run."""
    git_commit: str | None = None
    """The commit of the current folder, if it is in a repository."""
    host: str | None = None
    """The name of the machine."""


class RunRecord(Model):
    """`run.json`."""

    spec: RunSpec
    """The specification of the run."""
    use: RunUse = RunUse()
    """The environment of the run."""


class Sample(Model):
    """What an agent uses at one time; None if that is not known."""

    seconds: float
    """Seconds since the agent's start."""
    memory_mb: float | None = None
    """Memory in MiB."""
    cpu_seconds: float | None = None
    """CPU seconds since the start."""
    processes: int | None = None
    """Number of processes and threads."""
    gpu_percent: float | None = None
    """Utilization of the GPUs, in percent."""
    gpu_memory_mb: float | None = None
    """Memory of the GPUs in MiB."""


class Artifact(Model):
    """A file of a run that is listed in its manifest."""

    path: str
    """Relative to the run directory, with `/`; bytes that are not UTF-8 as backslash escapes."""
    media_type: str = "application/octet-stream"
    """The media type."""
    size: int = 0
    """Size in bytes."""
    sha256: str | None = None
    """SHA-256 of the content, in hexadecimal."""
    producer: str
    """`agent`, `mleredux`, or the plugin that created it."""
    title: str | None = None
    """A short description for lists."""


class Manifest(Model):
    """`artifacts.json`: every stored file, and the skipped files with the reason."""

    run: str
    """Id of the run."""
    artifacts: tuple[Artifact, ...] = ()
    """The stored files."""
    left_out: tuple[dict[str, str], ...] = ()
    """`{"path": …, "reason": …}`; at most 1,000 entries; a last entry counts the rest."""
