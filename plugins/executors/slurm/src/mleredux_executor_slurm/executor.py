"""Runs as Slurm jobs, using its commands: `sbatch`, `squeue`, `sacct`, `scancel`, `sinfo`."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence

from mleredux.errors import ExecutorError
from mleredux.models.formats import counted
from mleredux.plugin.executor import JobSpec, JobStatus, Node, job_environment
from mleredux.plugin.sandbox import Finding

OPTIONS_VARIABLE = "MLEREDUX_SLURM_OPTIONS"
JOB_NAME = "mleredux"
_OWN_MEMORY_MB = 512
"""Memory of a job in addition to the agent's, for the program that follows and grades the run."""
_MOST_ELEMENTS = 1000
"""Maximum size of an array; Slurm's default limit is 1001."""
_NOTICE_SECONDS = 300
_FRESH_SECONDS = 1.0
_COMMAND_SECONDS = 60
_WAITING = frozenset(
    ("PENDING", "CONFIGURING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT")
)
_HELD = frozenset({"launch failed requeued held", "JobHoldMaxRequeue"})
"""Slurm's reasons for jobs that only an administrator can release."""
_RUNNING = frozenset(("RUNNING", "COMPLETING", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"))


class SlurmExecutor:
    """The jobs of this user in a Slurm cluster."""

    id = "slurm"
    title = "Jobs of a Slurm cluster"
    allocates = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, JobStatus] = {}
        self._ended: dict[str, JobStatus] = {}
        self._until = 0.0

    def check(self) -> list[Finding]:
        """Check whether the controller responds and has nodes."""
        try:
            nodes = self.nodes()
        except ExecutorError as error:
            return [Finding("Slurm", False, error.message, error.hint)]
        up = sum(node.up for node in nodes)
        remedy = None if up else "Ask the administrator of the cluster."
        return [Finding("Slurm", up > 0, f"{up} of {counted(len(nodes), 'node')} can run jobs.", remedy)]

    def nodes(self) -> Sequence[Node]:
        """Return the nodes with the memory available to agents, and with their partitions and features as labels."""
        nodes: dict[str, Node] = {}
        for line in _run("sinfo", "--Node", "--noheader", "--format=%N|%c|%m|%G|%P|%f|%T").splitlines():
            name, cpus, memory, gres, partition, features, state = line.split("|")
            labels = {partition.rstrip("*"), *(feature for feature in features.split(",") if feature != "(null)")}
            labels |= set(nodes[name].labels) if name in nodes else set()
            up = state.startswith(("idle", "mixed", "allocated", "completing")) and not state.endswith("*")
            left = max(0, int(memory) - _OWN_MEMORY_MB)
            nodes[name] = Node(name, float(cpus), left, _gpus(gres), tuple(sorted(labels)), up)
        return list(nodes.values())

    def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
        """Submit an array job for all runs with equal requirements; if one is refused, none remains."""
        groups: dict[tuple[str, ...], list[JobSpec]] = {}
        for spec in specs:
            groups.setdefault(_requirements(spec), []).append(spec)
        jobs: dict[str, str] = {}
        try:
            for requirements, group in groups.items():
                for start in range(0, len(group), _MOST_ELEMENTS):
                    jobs |= _submit(requirements, group[start : start + _MOST_ELEMENTS])
        except BaseException:
            for number in {job.partition("_")[0] for job in jobs.values()}:
                with contextlib.suppress(ExecutorError):
                    self.cancel(number)
            raise
        with self._lock:
            self._until = 0.0
        return [jobs[spec.run_id] for spec in specs]

    def poll(self, jobs: Iterable[str]) -> Mapping[str, JobStatus]:
        """Query `squeue`, at most once a second for all callers, and `sacct` for jobs that it no longer lists."""
        jobs = list(jobs)
        with self._lock:
            if time.monotonic() >= self._until:
                self._known = _queue()
                self._until = time.monotonic() + _FRESH_SECONDS
            if forgotten := [job for job in jobs if job not in self._known and job not in self._ended]:
                self._ended |= _account(forgotten)
            return {job: self._known.get(job) or self._ended[job] for job in jobs}

    def cancel(self, job: str) -> None:
        """Cancel a job with SIGKILL: the caller has already waited."""
        _run("scancel", "--full", "--signal=KILL", job, ignore=True)
        _run("scancel", job, ignore=True)

    def fetch(self, spec: JobSpec) -> None:
        """Do nothing: the nodes share the file system."""


def _requirements(spec: JobSpec) -> tuple[str, ...]:
    limits = spec.limits
    return (
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={max(1, -(-int(limits.cpus * 1000) // 1000))}",
        f"--mem={limits.memory_mb + _OWN_MEMORY_MB}M",
        *((f"--gres=gpu:{limits.gpus}",) if limits.gpus else ()),
        f"--time={-(-int(spec.seconds) // 60)}",
        f"--signal=B:USR1@{_NOTICE_SECONDS}",
        "--requeue",
        "--open-mode=append",
        "--output=/dev/null",
        f"--chdir={spec.work_dir}",
    )


def _submit(requirements: Sequence[str], specs: Sequence[JobSpec]) -> dict[str, str]:
    """Submit an array; return its jobs by the ids of runs."""
    options = shlex.split(os.environ.get(OPTIONS_VARIABLE, ""))
    last = (f"--job-name={JOB_NAME}", f"--array=0-{len(specs) - 1}")  # identifies the jobs, regardless of the options
    number = _run("sbatch", "--parsable", *requirements, *options, *last, script=_script(specs))
    number = number.strip().partition(";")[0]
    return {spec.run_id: f"{number}_{index}" for index, spec in enumerate(specs)}


def _script(specs: Sequence[JobSpec]) -> str:
    """Return a batch script: each array element's command replaces the shell, in order to receive its signals."""
    lines = [f"{index}) exec {shlex.join(spec.command)} ;;" for index, spec in enumerate(specs)]
    return "\n".join(("#!/bin/sh", 'case "$SLURM_ARRAY_TASK_ID" in', *lines, "esac", ""))


def _queue() -> dict[str, JobStatus]:
    """Return the state of each job of this user that the controller still knows."""
    statuses = {}
    words = ("--me", f"--name={JOB_NAME}", "--states=all", "--array", "--noheader", "--format=%F_%K|%T|%r|%N")
    for line in _run("squeue", *words).splitlines():
        job, state, reason, node = line.split("|", 3)
        if state in _RUNNING:
            statuses[job] = JobStatus("running", node)
        elif state in _WAITING and reason not in _HELD:
            detail = state.lower() if reason in ("None", "") else f"{state.lower()}, {reason}"
            statuses[job] = JobStatus("waiting", detail)
        else:
            statuses[job] = JobStatus("ended", reason if reason in _HELD else _ended(state))
    return statuses


def _account(jobs: Sequence[str]) -> dict[str, JobStatus]:
    """Return the outcome of jobs that the controller has forgotten, without details if Slurm keeps no accounts."""
    statuses = dict.fromkeys(jobs, JobStatus("ended"))
    for start in range(0, len(jobs), _MOST_ELEMENTS):
        selection = f"--jobs={','.join(jobs[start : start + _MOST_ELEMENTS])}"
        words = ("--allocations", "--noheader", "--parsable2", "--format=JobID,State,NodeList")
        with contextlib.suppress(ExecutorError):
            for line in _run("sacct", selection, *words).splitlines():
                job, state, node = line.split("|")
                if job in statuses and state not in _RUNNING | _WAITING:  # else accounting lags
                    statuses[job] = JobStatus("ended", f"{_ended(state)} on {node}")
    return statuses


def _ended(state: str) -> str:
    return state.partition(" by ")[0].lower().replace("_", " ")


def _gpus(gres: str) -> int:
    """Return the number of GPUs in, for example, `gpu:a100:4(S:0-1),gpu:2`; without a number, there is one."""
    total = 0
    for item in gres.split(","):
        name, *rest = item.partition("(")[0].split(":")
        if name == "gpu":
            total += int(rest[-1]) if rest and rest[-1].isdigit() else 1
    return total


def _run(*words: str, script: str | None = None, ignore: bool = False) -> str:
    try:
        done = subprocess.run(
            words, input=script, capture_output=True, text=True, timeout=_COMMAND_SECONDS, env=job_environment()
        )
    except FileNotFoundError:
        raise ExecutorError(
            f"The Slurm command {words[0]} was not found.", hint="Run this on a login node of the cluster."
        ) from None
    except subprocess.TimeoutExpired:
        raise ExecutorError(f"Slurm's {words[0]} did not respond within {_COMMAND_SECONDS} seconds.") from None
    if done.returncode and not ignore:
        reason = done.stderr.strip().rpartition("\n")[2].rpartition("error: ")[2].rpartition("fatal: ")[2][-300:]
        hint = "Check that Slurm's commands reach the cluster from here, e.g. with `sinfo`."
        if words[0] == "sbatch":
            hint = f"Options of sbatch, such as --partition, are taken from {OPTIONS_VARIABLE}."
        raise ExecutorError(f"Slurm's {words[0]} failed: {reason.rstrip('.')}.", hint=hint)
    return done.stdout


EXECUTOR = SlurmExecutor()
