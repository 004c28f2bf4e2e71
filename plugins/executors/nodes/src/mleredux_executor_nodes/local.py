"""The executor `local`: each run in a separate process on this machine, which outlives the process that started it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from mleredux.errors import ExecutorError, file_errors
from mleredux.plugin.executor import JobSpec, JobStatus, Node, job_environment
from mleredux.plugin.host import machine_slots as machine
from mleredux.plugin.host import process_birth as birth
from mleredux.plugin.sandbox import Finding


class LocalExecutor:
    """Processes on this machine; the slots of the runs directory limit the number of concurrent agents."""

    id = "local"
    title = "Processes on this machine"
    allocates = False

    def __init__(self) -> None:
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def check(self) -> list[Finding]:
        """Do nothing: local processes always work."""
        return [Finding("processes", True, "Runs can be executed as processes on this machine.")]

    def nodes(self) -> Sequence[Node]:
        """Return this machine."""
        has = machine()
        return [Node(os.uname().nodename, has.cpus, has.memory_mb, len(has.gpus))]

    def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
        """Start processes in their own sessions."""
        jobs, null = [], subprocess.DEVNULL
        for spec in specs:
            with file_errors(ExecutorError, f"The process of run {spec.run_id} can't be started"):
                process = subprocess.Popen(
                    spec.command, env=job_environment(), stdin=null, stdout=null, stderr=null, start_new_session=True
                )
            job = f"{process.pid}-{birth(process.pid)!r}"
            self._started[job] = process
            jobs.append(job)
        return jobs

    def poll(self, jobs: Iterable[str]) -> Mapping[str, JobStatus]:
        """Return the processes that are alive."""
        return {job: JobStatus("running" if self._is_alive(job) else "ended") for job in jobs}

    def cancel(self, job: str) -> None:
        """Kill a process."""
        if self._is_alive(job):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(job.partition("-")[0]), signal.SIGKILL)

    def fetch(self, spec: JobSpec) -> None:
        """Do nothing: the disk is the same."""

    def _is_alive(self, job: str) -> bool:
        started = self._started.get(job)
        if started is not None and started.poll() is not None:
            self._started.pop(job, None)
            return False
        pid, _, born = job.partition("-")
        now = birth(int(pid))
        return now is not None and repr(now) == born


EXECUTOR = LocalExecutor()
