"""Runs: specification, environment, outcome and artifacts."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from mleredux.models.agent import Grants, Limits, Network
from mleredux.models.base import Model


class State(StrEnum):
    """The state of a run."""

    QUEUED = "queued"
    """The run is waiting for resources."""
    PREPARING = "preparing"
    """The data of the task is prepared."""
    BUILDING = "building"
    """The environment of the agent is built."""
    RUNNING = "running"
    """The agent is running."""
    GRADING = "grading"
    """The submission is graded."""
    PRODUCING = "producing"
    """Artifacts are created from the agent's files."""
    DONE = "done"
    """Complete: the agent ended on its own or used up its budget, and its submission was graded."""
    FAILED = "failed"
    """Ended by a failure; the cause states its kind."""
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
    """The cause of failure; None if the agent exited with code 0, or used up a budget that was meant to end it."""
    limit: str | None = None
    """The limit that ended the agent: time, memory, disk, processes, or a budget for language models."""
    message: str | None = None
    """One sentence about the cause."""
    seconds: float = 0.0
    """Seconds for which the agent ran."""
    paused_seconds: float = 0.0
    """How many of these seconds the clock of the time limit was paused because a provider of language models was
    down.
    """
    max_memory_mb: float | None = None
    """Peak memory in MiB."""
    cpu_seconds: float | None = None
    """CPU seconds used."""

    @property
    def working_seconds(self) -> float:
        """Seconds for which the agent ran, without those for which its clock was paused."""
        return self.seconds - self.paused_seconds


class NotSubmitted(Model):
    """There is no submission."""

    problem: ClassVar[str] = "does not exist"
    """The end of a sentence that starts with the file's name."""


class Unusable(Model):
    """The submission's path holds something that can't be graded: a link, a folder, or a file that is too large."""

    problem: str
    """The end of a sentence that starts with the file's name."""


Submitted = Path | NotSubmitted | Unusable
"""The submission: a regular file, or the problem that was found in its place."""


class Attempts(Model):
    """The agents of a run started so far, according to its event log."""

    unfinished: bool = False
    """Whether the last attempt was neither abandoned nor recorded as the stage's result, so that it can be
    continued.
    """
    outcome: Outcome | None = None
    """The outcome of that attempt, if it has ended."""
    started: bool = False
    """Whether any agent was started."""
    monotonic: float | None = None
    """When the last agent was started, in seconds of the monotonic clock."""
    paused_before: float = 0.0
    """Seconds for which the clocks of earlier agents were paused."""


class RunPlan(Model):
    """A run that can be created: its validated request, with all defaults filled in."""

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
    """The agent's access beyond its sandbox, including the hosts that it can reach."""
    options: dict[str, Any] = {}
    """Options of the agent for this run."""
    obfuscated: bool = False
    """Whether the agent gets the description without the competition's name and story."""
    context: str | None = None
    """Additional text for the agent, if any."""
    replay: str | None = None
    """The run in the same directory whose recorded LLM responses are replayed; None: models are called."""
    verify: bool = False
    """Whether to execute the final code again after grading, to verify the result."""
    project: str | None = None
    """The owner, if several projects share a runs directory; plugins reveal a run only within its project."""
    experiment: str | None = None
    """The experiment that the run belongs to, if any."""
    arm: str | None = None
    """The arm of the experiment."""


class RunSpec(RunPlan):
    """The specification of a run, as requested."""

    id: str
    """The id of the run, which is also the name of its folder."""
    data_dir: str
    """The folder of prepared data."""
    created_at: datetime
    """When the run was requested, in UTC."""


class RunUse(Model):
    """The environment of a run, which can only be resumed in the same environment."""

    task_version: str | None = None
    """The version of the task."""
    task_data: str | None = None
    """Digest of the record of prepared files."""
    agent_version: str | None = None
    """The version of the agent."""
    image: str | None = None
    """Identity of the agent's environment: the digest of an image, or of the interpreter's packages."""
    packages: dict[str, str] = {}
    """Versions of mleredux and its plugins."""
    tools: dict[str, str] = {}
    """The SHA-256 of each tool given to the agent (its declaration and its files), by id."""
    python: str | None = None
    """The version of Python that executed the run."""
    git_commit: str | None = None
    """The commit of the current folder, if it is in a repository."""
    host: str | None = None
    """The name of the machine."""


class RunRecord(Model):
    """The content of `run.json`."""

    spec: RunSpec
    """The specification of the run."""
    use: RunUse = RunUse()
    """The environment of the run."""


class Sample(Model):
    """Resource use of an agent at one point in time; None if unknown."""

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
    """Relative to the run directory, with `/` as separator; bytes that are not UTF-8 are escaped with backslashes."""
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
    """The content of `artifacts.json`: every stored file, and every skipped file with the reason."""

    run: str
    """Id of the run."""
    artifacts: tuple[Artifact, ...] = ()
    """The stored files."""
    left_out: tuple[dict[str, str], ...] = ()
    """Skipped files as `{"path": …, "reason": …}`, at most 1,000 entries; the last entry then counts the rest."""
