#!/usr/bin/env python3
"""Inject faults into executors: runs on this machine, a Slurm cluster and a Ray cluster, parts of which are killed.

    uv run python benchmarks/executors.py faults            # the table engine × fault
    uv run python benchmarks/executors.py chaos --rounds 100
    uv run python benchmarks/executors.py overhead          # compared with the engines alone; five minutes

The agent of the runs records each start, so that lost and repeated runs are counted. A separate process follows them,
like a command line, and is killed like everything else. Needs Slurm's programs (`.ci/slurm`) and Ray (`.ci/ray`).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from _measuring import machine, table
from mleredux._core.plugins import Catalogue
from mleredux._core.store import Run
from mleredux.plugin.executor import Executor, job_environment
from mleredux_executor_nodes import remote_runs
from mleredux_support.gate import WORK, WORK_VARIABLE
from mleredux_support.lab import Lab, until
from mleredux_support.ray_cluster import RayCluster, ray_python
from mleredux_support.slurm import SlurmCluster

ENGINES = ("local", "slurm", "ray")
IN_FLIGHT, FAULTS_EACH = 6, 10
SECONDS = 400
_BARE_RAY = """
import os, subprocess, sys, ray
ray.init(os.environ["MLEREDUX_RAY_ADDRESS"], log_to_driver=False, logging_level="ERROR")
work = ray.remote(num_cpus=1, memory=768 * 2**20)(lambda words, env: subprocess.run(words, env=env).returncode)
ray.get([work.remote(["sh", "-c", sys.argv[2]], dict(os.environ)) for _ in range(int(sys.argv[1]))])
"""


class Engine:
    """An engine on this machine, with its possible faults.

    Attributes:
        faults: Name → a function that injects the fault into a run; None if it does not apply to the engine.
    """

    def __init__(self, name: str, cluster: SlurmCluster | RayCluster | None, deadlines: Sequence[float]) -> None:
        self.name, self.cluster = name, cluster
        self._deadlines = [f"--silent={deadlines[0]}", f"--start={deadlines[1]}"]
        self.executor: Executor = Catalogue().executor(name)
        self._follower: subprocess.Popen[bytes] | None = None
        self._repair = float("inf")
        slurm = isinstance(cluster, SlurmCluster)
        self.faults: dict[str, Callable[[Lab, Run], None] | None] = {
            "controller killed": self.kill_follower,
            "run's process killed": lambda lab, run: self._signal(lab, run, signal.SIGKILL),
            "run's process stopped (SIGSTOP)": lambda lab, run: self._signal(lab, run, signal.SIGSTOP),
            "node killed": self.kill_node if cluster else None,
            "requeued": self.requeue if cluster else None,
            "preempted": self.preempt if slurm else None,
            "engine restarted": self.restart if cluster else None,
            "cancelled": lambda _lab, run: run.ask_to_cancel(),
        }

    def follow(self, lab: Lab) -> None:
        """Start a process that submits all runs of a lab to the engine, or follows them."""
        words = [sys.executable, __file__, "follow", "--engine", self.name, "--home", str(lab.home)]
        self._follower = subprocess.Popen([*words, *self._deadlines], env=self.environment(lab))

    def environment(self, lab: Lab) -> dict[str, str]:
        """Return the environment variables of a process that uses the engine."""
        return {**os.environ, **Lab.environment(lab.home)}

    def wait(self) -> None:
        """Repair everything, and wait until all runs have ended; runs that do not end in time count as lost."""
        assert self._follower is not None
        end = time.monotonic() + SECONDS
        while self._follower.poll() is None and time.monotonic() < end:
            self.repair(now=True)
            time.sleep(2)

    def close(self) -> None:
        """End the process that follows the runs."""
        if self._follower is not None:
            self._follower.kill()
            self._follower.wait()

    def kill_follower(self, lab: Lab, _run: Run) -> None:
        """Kill the process that follows the runs, and start another one."""
        assert self._follower is not None
        self._follower.kill()
        self._follower.wait()
        self.follow(lab)

    def kill_node(self, lab: Lab, run: Run) -> None:
        """Kill the node of a run; it comes back after some seconds."""
        assert self.cluster is not None
        status = lab.status(run)
        if status.state != "running" or status.detail not in self.cluster.nodes[1:] or self._repair < float("inf"):
            self.requeue(lab, run)  # the first node is Ray's head, and only one node at a time is dead
            return
        runs = [one for one in runs_of(lab) if not one.state.final and lab.status(one).detail == status.detail]
        self.cluster.kill_node(status.detail, lab.processes(runs))
        self._repair = time.monotonic() + 12

    def requeue(self, lab: Lab, run: Run) -> None:
        """Make the engine take the node away from the run, and restart the run."""
        with contextlib.suppress(ValueError, AssertionError, psutil.Error):  # it has no node now
            if isinstance(self.cluster, SlurmCluster):
                self.cluster.succeeds("scontrol", "requeue", lab.job(run))
            elif isinstance(self.cluster, RayCluster):
                self.cluster.kill_actor(lab.job(run))

    def preempt(self, lab: Lab, run: Run) -> None:
        """Let jobs of higher priority take all nodes for some seconds."""
        assert isinstance(self.cluster, SlurmCluster)
        self.cluster.fill("high")
        with contextlib.suppress(AssertionError):
            until(lambda: lab.status(run).state != "running", 20)
        self.cluster.empty()

    def restart(self, _lab: Lab, _run: Run) -> None:
        """Kill the engine's controller, and start it again."""
        if isinstance(self.cluster, SlurmCluster):
            self.cluster.stop_controller(kill=True)
        elif isinstance(self.cluster, RayCluster):
            self.cluster.stop_controller()
        time.sleep(1)
        assert self.cluster is not None
        self.cluster.start_controller()

    def repair(self, *, now: bool = False) -> None:
        """Restore a dead node when its time is over; end preempting jobs whose end a killed controller forgot."""
        if isinstance(self.cluster, SlurmCluster):
            self.cluster.empty()
        if self.cluster is not None and self._repair < float("inf") and (now or time.monotonic() > self._repair):
            self._repair = float("inf")
            self.cluster.repair()

    @staticmethod
    def _signal(lab: Lab, run: Run, number: int) -> None:
        for process in lab.processes([run]):
            with contextlib.suppress(psutil.Error):
                if "mleredux_executor_nodes.node" in process.cmdline()[:3]:
                    process.send_signal(number)


def runs_of(lab: Lab) -> list[Run]:
    """Return all runs of a lab."""
    return [lab.store.get(path.name) for path in sorted(lab.store.path.glob("*-toy-*"))]


@contextlib.contextmanager
def engine(name: str, deadlines: Sequence[float]) -> Iterator[Engine]:
    """Start an engine with its own cluster."""
    if name == "local":
        os.environ |= {"MLEREDUX_CPUS": "16", "MLEREDUX_MEMORY_MB": "16000"}  # as the clusters declare
        yield Engine(name, None, deadlines)
        return
    with SlurmCluster() if name == "slurm" else RayCluster(4, cpus=4) as cluster:
        os.environ |= cluster.env
        yield Engine(name, cluster, deadlines)


@contextlib.contextmanager
def laboratory(chosen_engine: Engine, runs: int, *, waits: bool = True) -> Iterator[Lab]:
    """Create a lab with new runs."""
    with tempfile.TemporaryDirectory(prefix="mleredux-executors-", ignore_cleanup_errors=True) as folder:
        lab = Lab(Path(folder), chosen_engine.executor)
        for _ in range(runs):
            lab.new(waits=waits, limits={"time_limit": 4 * SECONDS})
        try:
            yield lab
        finally:
            chosen_engine.close()


def begin(chosen_engine: Engine, lab: Lab) -> None:
    """Follow the runs, and wait until their agents have started."""
    chosen_engine.follow(lab)
    try:
        until(lambda: all(lab.starts(run) for run in runs_of(lab)), 2 * SECONDS)
    except AssertionError:
        for run in runs_of(lab):
            run_summary = f"{run.state}, {run.message}, {lab.status(run)}, started {lab.starts(run)}×"
            print(f"  {chosen_engine.name} {run.id}: {run_summary}", flush=True)
        raise


def end(chosen_engine: Engine, lab: Lab, cancelled: set[str]) -> Tally:
    """Let the agents continue, and count the outcomes of the runs."""
    lab.release()
    chosen_engine.wait()
    runs = runs_of(lab)
    cancelled_runs = [run for run in runs if run.id in cancelled]
    rest = [run for run in runs if run.id not in cancelled]
    count = lab.count(rest)
    open_ = [run.id for run in cancelled_runs if run.state not in ("cancelled", "done")]
    for run in runs:
        if run.id in {*count.lost, *count.twice, *open_}:
            print(f"  {chosen_engine.name} {run.id}: {run.state}, {run.message}, {lab.status(run)}", flush=True)
    return Tally(len(runs), [*count.lost, *open_], list(count.twice), sum(lab.starts(run) for run in runs))


@dataclass
class Tally:
    """Outcomes of runs: ids of lost runs, ids of repeated runs, and the number of agent starts."""

    runs: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    starts: int = 0


def one_fault(chosen_engine: Engine, name: str) -> str:
    """Return a cell of the table: lost / repeated runs, of two, and the effect of the fault on one of them."""
    fault = chosen_engine.faults[name]
    if fault is None:
        return "–"
    with laboratory(chosen_engine, 4 if name == "node killed" else 2) as lab:
        begin(chosen_engine, lab)
        victim = next((run for run in runs_of(lab) if lab.status(run).detail != "n1"), runs_of(lab)[0])
        job, starts, begun = lab.job(victim), lab.starts(victim), time.monotonic()
        fault(lab, victim)
        took = ""
        if name not in ("controller killed", "engine restarted"):
            until(
                lambda: victim.state.final or lab.job(victim) != job or lab.starts(victim) > starts, SECONDS, poll=0.2
            )
            took = f", {time.monotonic() - begun:.0f} s"
        else:
            time.sleep(5)
        tally = end(chosen_engine, lab, {victim.id} if name == "cancelled" else set())
        done = {"cancelled": "cancelled"}.get(str(victim.state), f"agent started {lab.starts(victim)}×")
        return f"{len(tally.lost)} / {len(tally.twice)} ({done}{took})"


def chaos(chosen_engine: Engine, rounds: int, seed: int) -> tuple[Tally, Counter[str]]:
    """Inject random, overlapping faults into active runs, one per round."""
    rng, total, done = random.Random(seed), Tally(), Counter[str]()
    names = [name for name, fault in chosen_engine.faults.items() if fault is not None]
    while done.total() < rounds:
        with laboratory(chosen_engine, IN_FLIGHT) as lab:
            begin(chosen_engine, lab)
            hits, cancelled = Counter[str](), set[str]()
            for _ in range(min(FAULTS_EACH, rounds - done.total())):
                chosen_engine.repair()
                live = sorted(runs_of(lab), key=lambda run: (run.state.final, hits[run.id], rng.random()))
                name, victim = rng.choice(names), live[0]
                fault = chosen_engine.faults[name]
                assert fault is not None
                fault(lab, victim)
                hits[victim.id] += 1
                done[name] += 1
                if name == "cancelled":
                    cancelled.add(victim.id)
                time.sleep(rng.uniform(0, 2))
            tally = end(chosen_engine, lab, cancelled)
        total.runs += tally.runs
        total.starts += tally.starts
        total.lost += tally.lost
        total.twice += tally.twice
        print(
            f"{chosen_engine.name}: {done.total()} faults, {total.runs} runs, {total.lost=} {total.twice=}", flush=True
        )
    return total, done


def bare(chosen_engine: Engine, runs: int) -> None:
    """Have the engine do the agents' work without mleredux, as one array or as tasks."""
    if chosen_engine.name == "slurm":
        words = ["sbatch", f"--array=0-{runs - 1}", "--cpus-per-task=1", "--mem=768M", "--output=/dev/null"]
        subprocess.run([*words, "--job-name=bare", f"--wrap={WORK}"], check=True, capture_output=True)
        assert isinstance(chosen_engine.cluster, SlurmCluster)
        while chosen_engine.cluster.command("squeue", "--noheader", "--name=bare").strip():
            time.sleep(0.5)
        return
    words = [str(ray_python()), "-c", _BARE_RAY, str(runs), WORK]
    subprocess.run(words, check=True, env={**job_environment(), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"})


def seconds(chosen_engine: Engine, runs: int, *, ours: bool) -> float:
    """Return wall seconds until the work is done, by runs that are also graded, or by the engine alone."""
    with laboratory(chosen_engine, runs, waits=False) as lab:
        os.environ |= Lab.environment(lab.home)
        everything, begun = runs_of(lab), time.monotonic()
        if not ours:
            bare(chosen_engine, runs)
            return time.monotonic() - begun
        lab.pipeline().execute(everything)
        taken = time.monotonic() - begun
        assert lab.count(everything).done == runs, lab.count(everything)
    return taken


def main() -> None:
    """Run the parts from the arguments, and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["faults", "chaos", "overhead", "follow"])
    parser.add_argument("--engine", action="append", choices=ENGINES, help="Only this one; may be repeated.")
    parser.add_argument("--rounds", type=int, default=100, help="Faults of the chaos, on each engine.")
    parser.add_argument("--runs", type=int, default=4, help="Runs of the overhead, at the same time.")
    parser.add_argument("--work", type=int, default=60, help="Seconds that the agent of each takes.")
    parser.add_argument("--times", type=int, default=1, help="Alternating measurements of the overhead.")
    parser.add_argument("--silent", type=float, default=60.0, help="Seconds until a stopped process is replaced.")
    parser.add_argument("--start", type=float, default=120.0, help="Seconds until a job that never starts is replaced.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    engines = given.engine or list(ENGINES)
    if given.what == "follow":
        remote_runs._SILENT_SECONDS, remote_runs._START_SECONDS = given.silent, given.start
        lab = Lab(given.home, Catalogue().executor(engines[0]))
        lab.pipeline().execute(runs_of(lab))
        return
    print(machine(), flush=True)
    rows: dict[str, dict[str, str]] = {}
    for name in engines:
        with engine(name, (given.silent, given.start)) as chosen_engine:
            if given.what == "faults":
                for fault in chosen_engine.faults:
                    rows.setdefault(fault, {})[name] = one_fault(chosen_engine, fault)
                    print(f"{name}: {fault}: {rows[fault][name]}", flush=True)
            elif given.what == "chaos":
                total, done = chaos(chosen_engine, given.rounds, given.seed)
                rows[name] = {
                    "faults": str(done.total()),
                    "runs": str(total.runs),
                    "lost": str(len(total.lost)),
                    "twice": str(len(total.twice)),
                    "agents started": str(total.starts),
                    "which": ", ".join(f"{number} {fault}" for fault, number in done.most_common()),
                }
            elif name != "local":
                os.environ[WORK_VARIABLE] = str(given.work)  # before the agents are registered
                taken = [
                    [seconds(chosen_engine, given.runs, ours=ours) for ours in (True, False)]
                    for _ in range(given.times)
                ]
                best = [min(column) for column in zip(*taken, strict=True)]
                rows[name] = {
                    "mleredux, s": f"{best[0]:.1f}",
                    "bare, s": f"{best[1]:.1f}",
                    "overhead": f"{(best[0] / best[1] - 1) * 100:+.0f} %",
                }
                print(f"{name}: {rows[name]} {taken}", flush=True)
    columns = list(next(iter(rows.values())))
    print(
        "\n" + table(["", *columns], *([row, *(cells.get(one, "") for one in columns)] for row, cells in rows.items()))
    )


if __name__ == "__main__":
    main()
