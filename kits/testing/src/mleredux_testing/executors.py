"""The self-check for all executors, including third-party ones: it starts commands on the engine's nodes, as for
runs.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
from mleredux._core.executors import Executor, JobSpec, JobStatus, Node
from mleredux._core.plugins import current
from mleredux.errors import MlereduxError
from mleredux.models import Limits

from mleredux_testing.findings import Findings, expect_declared
from mleredux_testing.launches import wait_for
from mleredux_testing.names import ODD_NAME

_SECRET = "MLEREDUX_SERVE_TOKEN"
_PROGRAM = """
import os, pathlib, subprocess, sys, time
folder = pathlib.Path(sys.argv[1])
child = subprocess.Popen(["sleep", "600"]) if len(sys.argv) > 2 else None
told = [os.getpid(), child.pid if child else 0, os.environ.get("MLEREDUX_SERVE_TOKEN", ""), os.environ.get("GIVEN", "")]
(folder / "new").write_text("\\n".join(map(str, told)))
(folder / "new").rename(folder / "told")
while child and not (folder / "continue").exists():
    time.sleep(0.1)
if child:
    child.kill()
"""
_SUBMIT = """
import os, sys
from pathlib import Path
from mleredux_testing.executors import job_spec
from mleredux._core.plugins import current
print(*current().executor(sys.argv[1]).submit([job_spec(Path(sys.argv[2]), waits=True)]), flush=True)
os.kill(os.getpid(), 9)
"""


def job_spec(folder: Path, *, waits: bool = False) -> JobSpec:
    """Return the job of a program that writes `told` to its folder, and may wait there for `continue`."""
    folder.mkdir(parents=True, exist_ok=True)
    words = (sys.executable, "-c", _PROGRAM, str(folder), *(["waits"] if waits else []))
    return JobSpec(folder.name, folder, words, Limits(cpus=1, memory_mb=256, time_limit=60), 600)


class _Bench:
    def __init__(self, findings: Findings, executor: Executor, folder: Path, seconds: float) -> None:
        self.findings, self.executor, self.folder, self.seconds = findings, executor, folder, seconds
        self.jobs: list[str] = []

    def submit(self, *specs: JobSpec) -> list[str]:
        jobs = list(self.executor.submit(specs))
        self.jobs += jobs
        return jobs

    def state(self, job: str) -> str:
        return self.executor.poll([job])[job].state

    def holds_soon(self, condition: Callable[[], Any]) -> bool:
        return bool(wait_for(condition, self.seconds))

    def reported(self, spec: JobSpec) -> list[str]:
        path = spec.folder / "told"
        return path.read_text().splitlines() if self.holds_soon(path.exists) else []


def check_executor(executor: Executor | str, tmp: Path | None = None, *, seconds: float = 120) -> Findings:
    """Check an executor with programs on its nodes: how they are started, followed and killed.

    If the executor's own `check` finds that the engine can't be used on this machine, only its declaration is checked.

    Args:
        executor: The executor, or its id.
        tmp: A folder that the nodes see under the same path; None: a temporary folder.
        seconds: Time limit of the engine for each step.

    Raises:
        NotConforming: With all problems.
    """
    findings = Findings(f"Executor {executor if isinstance(executor, str) else executor.id}")
    with tempfile.TemporaryDirectory(prefix="mleredux-check-") as folder, findings.looking_at("executor"):
        checked = current().executor(executor) if isinstance(executor, str) else executor
        place = (tmp or Path(folder)) / ODD_NAME
        place.mkdir(parents=True)
        bench = _Bench(findings, checked, place, seconds)
        if _check_declaration(findings, checked):
            variables = {_SECRET: "of the server", "GIVEN": "ünï"}
            with mock.patch.dict(os.environ, variables), contextlib.ExitStack() as stack:
                stack.callback(_stop_all, bench)
                for check in (_check_nodes, _check_jobs, _check_cancel, _check_orphan, _check_threads):
                    with findings.looking_at(check.__name__.removeprefix("_check_")):
                        check(bench)
    return findings.close()


def _check_declaration(findings: Findings, executor: Executor) -> bool:
    """Check the declaration of the executor; return whether its engine can be used."""
    own = expect_declared(findings, executor, Executor, "mleredux.plugin.executor.Executor")
    broken = [finding.message for finding in own if not finding.ok]
    if broken:
        findings.good("jobs", f"not checked: {broken[0]}")
    return not broken


def _check_nodes(bench: _Bench) -> None:
    nodes = list(bench.executor.nodes())
    up = [node for node in nodes if isinstance(node, Node) and node.up and node.cpus >= 1 and node.memory_mb > 0]
    bench.findings.expect("nodes", up, "nodes() returns no node that is up and has CPUs and memory.")
    names = {node.name for node in nodes}
    bench.findings.expect("node names", len(names) == len(nodes), "nodes() returns the same node several times.")


def _check_jobs(bench: _Bench) -> None:
    """Check several concurrent jobs: all are executed, with different ids, in the caller's environment without
    secrets."""
    specs = [job_spec(bench.folder / f"job-{number}", waits=number == 0) for number in range(3)]
    jobs = bench.submit(*specs)
    expect = bench.findings.expect
    expect("ids", len(set(jobs)) == 3, f"submit() returned {jobs} for three runs.")
    rows = [bench.reported(spec) for spec in specs]
    if not expect("started", all(rows), "not all commands were executed."):
        return
    expect("environment", all(row[3] == "ünï" for row in rows), "the caller's variables don't reach the command.")
    expect("secrets", not any(row[2] for row in rows), "the server's token reaches the command: use job_environment().")
    status = bench.executor.poll([jobs[0]])[jobs[0]]
    running = isinstance(status, JobStatus) and status.state == "running"
    expect("running", running, f"a running job is reported as {status}.")
    (specs[0].folder / "continue").touch()
    ended = bench.holds_soon(lambda: all(status.state == "ended" for status in bench.executor.poll(jobs).values()))
    expect("ended", ended, "jobs whose commands have ended are not reported as ended.")
    statuses = bench.executor.poll([*jobs, "0-none-of-that-name"])
    known = statuses.get("0-none-of-that-name")
    expect("unknown", known is not None and known.state == "ended", "an unknown job is not reported as ended.")
    expect("nothing", not dict(bench.executor.poll([])), "poll([]) is not empty.")


def _check_cancel(bench: _Bench) -> None:
    spec = job_spec(bench.folder / "stopped", waits=True)
    [job] = bench.submit(spec)
    numbers = [int(word) for word in bench.reported(spec)[:2]]
    if not bench.executor.allocates:
        del numbers[1:]  # its agents outlive the process of a run, and are adopted
    bench.executor.cancel(job)
    sentence = "cancel() leaves processes of the job running, or poll() still reports it as running."
    ended = bench.holds_soon(lambda: bench.state(job) == "ended" and not any(map(_is_alive, numbers)))
    bench.findings.expect("cancel", ended, sentence)
    bench.executor.cancel(job)
    bench.findings.good("cancel again")


def _check_orphan(bench: _Bench) -> None:
    """Check that the job of a process that was killed is found again by its id."""
    if bench.executor.id not in current().entries("executors"):
        bench.findings.good("submitter killed", "not checked: it is not registered.")
        return
    spec = job_spec(bench.folder / "orphan", waits=True)
    words = [sys.executable, "-c", _SUBMIT, bench.executor.id, str(spec.folder)]
    job = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=bench.seconds).stdout.strip()
    bench.jobs.append(job)
    numbers = [int(word) for word in bench.reported(spec)[:1]]
    runs = bench.holds_soon(lambda: bench.state(job) == "running") and all(map(_is_alive, numbers))
    bench.findings.expect("submitter killed", numbers and runs, "a job does not outlive the process that submitted it.")
    bench.executor.cancel(job)
    stopped = bench.holds_soon(lambda: bench.state(job) == "ended" and not any(map(_is_alive, numbers)))
    bench.findings.expect("cancel another's job", stopped, "a job that another process submitted can't be cancelled.")


def _check_threads(bench: _Bench) -> None:
    with ThreadPoolExecutor(4) as pool:
        polls = [pool.submit(bench.executor.poll, [f"0-none-{number}"]) for number in range(4)]
        pool.submit(bench.executor.nodes).result()
        keys = [list(poll.result()) for poll in polls]
    right = keys == [[f"0-none-{number}"] for number in range(4)]
    bench.findings.expect("threads", right, "concurrent calls from several threads get each other's results.")


def _is_alive(number: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    return False


def _stop_all(bench: _Bench) -> None:
    for job in bench.jobs:
        with contextlib.suppress(MlereduxError):
            bench.executor.cancel(job)
