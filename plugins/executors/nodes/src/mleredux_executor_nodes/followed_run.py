"""The state of a run on an executor."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from mleredux.plugin.artifact import Run
from mleredux.plugin.executor import JobSpec, JobStatus

from mleredux_executor_nodes.replica import Replica


@dataclass
class FollowedRun:
    """A run on an executor.

    Attributes:
        tries: Number of jobs submitted since a stage was finished.
        again: Earliest time at which the run may be resubmitted.
        refused: Time since which the executor has been refusing the run.
        lease: The last lease written by the worker.
        started: Whether the lease was written after the job got its node.
        changed: Time when the lease was written, or when the job was last seen waiting.
        status: The status of the job when the run's files were last read.
        due: Time when the run's files are read next, if the job's status stays the same.
        moved: Time of the last new text for display.
        replica: The run in an object store, if its node shares no file system with this machine.
        problem: Why nothing is known about the run now, or why it is not submitted again.
    """

    run: Run
    spec: JobSpec
    job: str
    replica: Replica | None = None
    pulled: float = 0.0
    tries: int = 1
    again: float = 0.0
    refused: float | None = None
    finished: int = 0
    shown: str = ""
    lease: dict[str, Any] | None = None
    started: bool = False
    changed: float = field(default_factory=time.monotonic)
    status: JobStatus | None = None
    due: float = 0.0
    moved: float = field(default_factory=time.monotonic)
    cancelled: float | None = None
    problem: str | None = None

    @property
    def nonce(self) -> str:
        """The nonce of the run's ticket."""
        return self.spec.command[-1]
