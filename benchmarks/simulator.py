"""Simulate a cluster with the server's own scheduling code: `uv run python benchmarks/simulator.py`.

100,000 queued runs of 1,000 users on 500 nodes with 8 GPUs, scheduled by the code of `mleredux serve`. First it
measures one decision, one read of the queue and one start for queues of increasing length; then it simulates all runs
until they end. Times are CPU seconds of this process; the nodes and their clock are simulated.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from _measuring import machine, table
from mleredux_server.database import Database
from mleredux_server.database.tables import Job, Project, RunRow, User
from mleredux_server.scheduler.backlog import _LEAST, MOST, queued_runs
from mleredux_server.scheduler.decision import Demand, Running, Waiting, World, decide
from sqlalchemy import insert

NODE = Demand(64, 512_000, 8)
GPUS = (1, 2, 4, 8)
SHARES = (70, 15, 10, 5)
"""Percentage of runs by number of requested GPUs."""


def asked(number: int, users: int, chance: random.Random) -> tuple[Waiting, float]:
    """Return a run and its duration in seconds; some users have far more runs than others."""
    user = int(users * chance.random() ** 2)
    gpus = chance.choices(GPUS, SHARES)[0]
    demand = Demand(8.0 * gpus, 64_000.0 * gpus, gpus)
    seconds = min(24 * 3600.0, chance.lognormvariate(math.log(2 * 3600), 1))
    return Waiting(f"run-{number:06}", f"user-{user:04}", f"project-{user:04}", demand, float(number) / 1e6), seconds


def first_of_each(lines: dict[str, list[Waiting]]) -> list[Waiting]:
    """Return the runs of a queue that the server reads: the first runs of each user with the same request."""
    alike: dict[tuple[str, Demand], list[Waiting]] = {}
    for line in lines.values():
        for run in line:
            alike.setdefault((run.user, run.demand), []).append(run)
    return [run for group in alike.values() for run in group[-max(_LEAST, MOST // len(alike)) :]]


def jain(values: Iterable[float]) -> float:
    """Return Jain's fairness index: 1 if all values are equal (Jain, Chiu and Hawe 1984)."""
    listed = list(values)
    return sum(listed) ** 2 / (len(listed) * sum(value * value for value in listed))


def cpu(action: object, rounds: int = 3) -> float:
    """Return the lowest CPU seconds of several calls."""
    taken = []
    for _ in range(rounds):
        before = time.process_time()
        action()  # type: ignore[operator]
        taken.append(time.process_time() - before)
    return min(taken)


def costs(sizes: list[int], users: int, nodes: int) -> list[list[str]]:
    """Return rows: number of queued runs, and milliseconds of a decision, of reading the queue, and of a start."""
    rows, measured = [], []
    whole = Demand(*(nodes * value for value in NODE))
    for size in sizes:
        chance = random.Random(1)
        runs = [asked(number, users, chance)[0] for number in range(size)]
        lines: dict[str, list[Waiting]] = defaultdict(list)
        for run in reversed(runs):
            lines[run.user].append(run)
        seen = first_of_each(lines)
        running = [
            Running(f"r{n}", f"user-{n % users:04}", "p", Demand(8, 64_000, 1), 0.0) for n in range(nodes * 8 - 8)
        ]
        world = World(machine=whole, workers=10**6, now=1.0)
        decision = cpu(lambda: decide(seen, running, world))  # noqa: B023 - called immediately
        with tempfile.TemporaryDirectory() as folder:
            database = Database(f"sqlite:///{Path(folder) / 'service.sqlite'}")
            database.migrate()
            fill(database, runs)
            read = cpu(lambda: queue_of(database))  # noqa: B023
            names = iter([run.id for run in runs])
            start = cpu(lambda: [start_of(database, next(names)) for _ in range(50)]) / 50  # noqa: B023
            database.close()
        measured.append((size, decision, read, start))
        rows.append([f"{size:,}", f"{len(seen):,}", *(f"{1000 * value:.1f}" for value in (decision, read, start))])
    if len(measured) < 2:
        return rows
    (small, *before), (large, *after) = measured[0], measured[-1]
    slopes = [math.log(b / a) / math.log(large / small) for a, b in zip(before, after, strict=True)]
    return [*rows, ["slope", "", *(f"{slope:.2f}" for slope in slopes)]]


def fill(database: Database, runs: list[Waiting]) -> None:
    """Write queued runs in the server's format."""
    users = sorted({run.user for run in runs})
    at = datetime.now(UTC)
    with database.writing() as session:
        session.execute(insert(User), [{"id": user, "name": user} for user in users])
        session.execute(insert(Project), [{"id": f"project-{user[5:]}", "name": user, "quota": {}} for user in users])
    for begin in range(0, len(runs), 5000):
        rows = [
            {
                "id": run.id,
                "kind": "run",
                "state": "queued",
                "project_id": run.project,
                "user_id": run.user,
                "cpus": run.demand.cpus,
                "memory_mb": int(run.demand.memory_mb),
                "gpus": int(run.demand.gpus),
                "created_at": at,
                "queued_at": at,
            }
            for run in runs[begin : begin + 5000]
        ]
        with database.writing() as session:
            session.execute(insert(Job), rows)


def queue_of(database: Database) -> None:
    """Read the queue as the server does."""
    with database.reading() as session:
        queued_runs(session)


def start_of(database: Database, run_id: str) -> None:
    """Record the start of a run as the server does."""
    with database.writing() as session:
        row = session.get(Job, run_id)
        assert row is not None
        row.state, row.started_at, row.waiting_for = "started", datetime.now(UTC), None
        row.attempts += 1
        session.get(RunRow, run_id)


def simulate(count: int, users: int, nodes: int, tick: float) -> list[list[str]]:
    """Simulate all runs from the queue to their end; return rows of results."""
    chance = random.Random(1)
    everything = [asked(number, users, chance) for number in range(count)]
    seconds = {run.id: value for run, value in everything}
    owner = {run.id: run.user for run, _ in everything}
    lines: dict[str, list[Waiting]] = defaultdict(list)
    for run, _ in reversed(everything):
        lines[run.user].append(run)
    whole = Demand(*(nodes * value for value in NODE))
    room = {free: set[int]() for free in range(9)}  # nodes by free GPUs
    room[8] = set(range(nodes))
    free_on = [8] * nodes
    running: dict[str, Running] = {}
    ends: list[tuple[float, str, int]] = []
    served: dict[str, float] = {}
    engine: list[Waiting] = []  # decided, but no single node has enough free GPUs
    used: dict[str, float] = defaultdict(float)
    now = gpu_seconds = held = deciding = 0.0
    decided = rounds = 0
    fair, busy_until = 0.0, 0.0
    waiting = count

    def take(node: int, gpus: int) -> None:
        room[free_on[node]].remove(node)
        free_on[node] -= gpus
        room[free_on[node]].add(node)

    while waiting or running or engine:
        while ends and ends[0][0] <= now:
            _, name, node = heapq.heappop(ends)
            take(node, -int(running.pop(name).demand.gpus))
        if waiting:
            before = time.process_time()
            world = World(machine=whole, workers=10**6, now=now + 1, served=served)
            decision = decide(first_of_each(lines), [*running.values(), *(_as_running(run) for run in engine)], world)
            deciding += time.process_time() - before
            rounds += 1
            decided += len(decision.start)
            begun = set(decision.start)
            for user in {owner[name] for name in begun}:
                engine += [run for run in lines[user] if run.id in begun]
                lines[user] = [run for run in lines[user] if run.id not in begun]
                served[user] = now
            waiting -= len(begun)
        still_running = []
        for run in engine:
            gpus = int(run.demand.gpus)
            fitting = next((free for free in range(gpus, 9) if room[free]), None)  # best fit
            if fitting is None:
                still_running.append(run)
                continue
            node = next(iter(room[fitting]))
            take(node, gpus)
            running[run.id] = Running(run.id, run.user, run.project, run.demand, now)
            heapq.heappush(ends, (now + seconds[run.id], run.id, node))
            used[run.user] += gpus * seconds[run.id]
            gpu_seconds += gpus * seconds[run.id]
        engine = still_running
        step = max(tick, (ends[0][0] - now) if ends and not engine else 0.0)
        if waiting:
            held += step * sum(run.demand.gpus for run in running.values())
            busy_until = now + step
            if now >= 4 * 3600 and not fair:
                demanding = [user for user, line in lines.items() if line]
                fair = jain(used[user] for user in demanding)
        now += step
    utilisation = held / (busy_until * whole.gpus)
    ideal = gpu_seconds / whole.gpus
    return [
        ["runs", f"{count:,}"],
        ["decisions (rounds)", f"{rounds:,}"],
        ["runs started per CPU second of scheduling", f"{decided / deciding:,.0f}"],
        ["a round, mean", f"{1000 * deciding / rounds:.1f} ms"],
        ["GPUs in use while runs wait", f"{100 * utilisation:.1f} %"],
        ["makespan ÷ (GPU hours ÷ GPUs)", f"{now / ideal:.3f}"],
        ["Jain's index of GPU hours given after 4 h, users with runs left", f"{fair:.3f}"],
    ]


def _as_running(run: Waiting) -> Running:
    return Running(run.id, run.user, run.project, run.demand, 0.0)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--tick", type=float, default=300, help="Simulated seconds between rounds; a server's is 1.")
    asked_for = parser.parse_args()
    print(machine(), end="\n\n")
    sizes = [size for size in (1_000, 10_000, 100_000) if size <= asked_for.runs]
    head = ["queued runs", "read of them", "decision, CPU ms", "reading the queue, CPU ms", "a start, CPU ms"]
    print(table(head, *costs(sizes, asked_for.users, asked_for.nodes)), end="\n\n")
    print(table(["", "value"], *simulate(asked_for.runs, asked_for.users, asked_for.nodes, asked_for.tick)))


if __name__ == "__main__":
    main()
