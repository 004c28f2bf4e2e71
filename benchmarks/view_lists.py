"""Measure what a server does with all runs: queries for its list, the comparison page, and the scheduler's own reads.

    uv run python benchmarks/view_lists.py [--runs 10000 --runs 100000] [--only WORD]

Each query is that of one request of the list, over rows of synthetic runs of one project; the 200 newest ones have
directories, which the comparison reads. The scheduler looks for runs of other programs every 5 seconds, and adds up
past use every 30 seconds. With PostgreSQL, if it is installed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from _measuring import machine, table
from mleredux.plugin.artifact import Run
from mleredux_experiments.pages.compare import _analysis
from mleredux_server.database.tables import Experiment, Job, Project, RunRow, User
from mleredux_server.files.masks import Masks
from mleredux_server.scheduler.decision import Demand
from mleredux_server.scheduler.history import History
from mleredux_server.scheduler.jobs import Jobs
from mleredux_server.scheduler.tally import Tally
from mleredux_server.web.source import ServerSource
from mleredux_server.web.table import _kept
from mleredux_support.postgresql import PostgresServer, find_binaries
from mleredux_support.server_local import LocalServer
from mleredux_view.shared import RunQuery
from sqlalchemy import insert, select

sys.path.insert(0, str(Path(__file__).parents[1] / "plugins/services/view/tests"))
from made_runs import make_run

START = datetime(2026, 1, 1, tzinfo=UTC)
REPEATED = 15
COMPARED = 200
TABLES, PLOT = "&part=analysis", "&plot=validation"
AGAIN = "first page again, no run having changed"
AGENTS = ("baseline", "aide", "openhands", "repo:https://github.com/someone/solver@" + "a1b2c3d4" * 5)
MESSAGE = "The agent's command ended with exit code 1, of which the log of the run has the last lines."


def fill(local: LocalServer, count: int) -> None:
    """Create a number of runs of a project: 80 tasks, 4 agents, 5 seeds, 100 experiments."""
    chance = random.Random(0)
    with local.service.database.writing() as session:
        project, user = session.scalars(select(Project)).one(), session.scalars(select(User)).one()
        own: dict[str, Any] = {"project_id": project.id, "user_id": user.id}
        named = [{"id": f"exp_{number}", "name": f"trial {number}", "request": {}, **own} for number in range(100)]
        session.execute(insert(Experiment), [{**one, "created_at": START} for one in named])
        for begin in range(0, count, 5_000):
            rows = [_row(number, chance, own) for number in range(begin, min(count, begin + 5_000))]
            jobs = [_job(row, count - number) | own for number, row in enumerate(rows, begin)]
            session.execute(insert(Job), jobs)
            session.execute(insert(RunRow), rows)
    for number in range(COMPARED):
        local.adopt(Run(make_run(local.service.store.path, number, status="done")))
    postgresql = local.service.database.engine.dialect.name == "postgresql"
    with local.service.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE" if postgresql else "ANALYZE")


def _job(row: dict[str, Any], age: int) -> dict[str, Any]:
    ended = datetime.now(UTC) - timedelta(seconds=20 * age)
    times = {"started_at": ended - timedelta(minutes=10), "ended_at": ended, "created_at": ended - timedelta(hours=1)}
    return {"id": row["id"], "kind": "run", "state": "ended", "cpus": 1.0, "memory_mb": 512, "gpus": 0, **times}


def _row(number: int, chance: random.Random, own: dict[str, Any]) -> dict[str, Any]:
    done, at = chance.random() < 0.8, START + timedelta(minutes=number)
    score = round(chance.random(), 5) if done else None
    return {
        "id": f"{at:%Y%m%d-%H%M%S}-task-{number:08d}", **own, "task": f"competition-{chance.randrange(80)}",
        "agent": AGENTS[number % 4], "sandbox": "docker", "seed": number % 5, "network": "none",
        "limits": {"time_limit": 3600.0, "cpus": 2.0, "memory_mb": 4096}, "options": {}, "labels": {},
        "request": {"task": "competition", "agent": "baseline", "text": "x" * 400},
        "experiment_id": f"exp_{number * 100 // 100_000 % 100}", "arm": f"arm {number % 4}",
        "status": "done" if done else "failed", "cause": None if done else "agent_crashed",
        "message": None if done else MESSAGE, "score": score, "percentile": score and 100 * score,
        "medal": "gold" if score and score > 0.9 else None, "verdict": "verified" if done else None,
        "seconds": chance.uniform(60, 3600), "cost_usd": chance.uniform(0, 4), "log_bytes": 2_000,
        "curve": [[60.0 * step, score] for step in range(8)] if done else [], "created_at": at, "updated_at": at,
    }  # fmt: skip


def measured(local: LocalServer, word: str) -> Iterator[tuple[str, float, float]]:
    """Yield the name of each query, and medians in ms of wall time and of this process's CPU time."""
    source = ServerSource(local.service, local.caller("admin"), Masks(local.service))
    member = replace(local.caller("admin"), admin=False, scopes=frozenset(["read"]))
    own = ServerSource(local.service, member, Masks(local.service))
    next_page = source.runs(RunQuery(limit=50, sort="cost_usd")).next
    task = {"task": frozenset(["competition-7"])}
    http = httpx.Client(base_url=local.url, timeout=120)
    origin = {"Origin": local.url, "Sec-Fetch-Site": "same-origin"}
    assert http.post("/ui/sign-in", data={"token": local.token}, headers=origin).status_code == 303
    history = History(local.service.database, lambda: Demand(8, 16_000, 0), 86_400.0)
    while history._older is not None:
        history._shares(datetime.now(UTC))
    requests_by_name: dict[str, Callable[[], Any]] = {
        "first page": lambda: source.runs(RunQuery(limit=50)),
        AGAIN: lambda: source.runs(RunQuery(limit=50)),
        "first page, of a member": lambda: own.runs(RunQuery(limit=50)),
        "filter by status": lambda: source.runs(RunQuery(limit=50, wanted={"status": frozenset(["failed"])})),
        "filter by task, of a member": lambda: own.runs(RunQuery(limit=50, wanted=task)),
        "search of two words": lambda: source.runs(RunQuery(limit=50, search="competition-7 solver")),
        "by score": lambda: source.runs(RunQuery(limit=50, sort="score")),
        "by cost, page 2": lambda: source.runs(RunQuery(limit=50, sort="cost_usd", after=next_page)),
        "rows alone, page 2": lambda: source.runs(RunQuery(limit=50, sort="cost_usd", after=next_page, facets=())),
        "whether something changed": source.version,
        "comparison of the newest 200 runs": lambda: _page(http, "/ui/compare?all=1"),
        "comparison: all tables": lambda: _page(http, f"/ui/compare?all=1{TABLES}"),
        "comparison: one of its plots": lambda: _page(http, f"/ui/compare?all=1{PLOT}"),
        "comparison, one of the runs having changed": lambda: _page(http, "/ui/compare?all=1", afresh=True),
        "comparison: all tables, likewise": lambda: _page(http, f"/ui/compare?all=1{TABLES}", afresh=True),
        "comparison: one of its plots, likewise": lambda: _page(http, f"/ui/compare?all=1{PLOT}", afresh=True),
        "scheduler: runs of other programs": Jobs(local.service, Tally(), lambda _: None).follow_foreign,
        "scheduler: past use": lambda: history._shares(datetime.now(UTC)),
    }
    for name, ask in requests_by_name.items():
        if word not in name:
            continue
        ask()
        taken = []
        for _ in range(REPEATED):
            if name != AGAIN:
                _kept.clear()  # as after a change
            begun, cpu = time.perf_counter(), time.process_time()
            ask()
            taken.append((1000 * (time.perf_counter() - begun), 1000 * (time.process_time() - cpu)))
        yield name, statistics.median(wall for wall, _ in taken), statistics.median(cpu for _, cpu in taken)


def _page(http: httpx.Client, address: str, *, afresh: bool = False) -> None:
    if afresh:
        _analysis.cache_clear()
    answer = http.get(address)
    assert answer.status_code == 200, answer.text


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, action="append")
    parser.add_argument("--only", default="", help="Measure only rows with this word.")
    arguments = parser.parse_args()
    counts = arguments.runs or [10_000, 100_000]
    cells: dict[str, list[str]] = {}
    heads = ["request (ms)"]
    with ExitStack() as stack:
        databases: dict[str, Callable[[Path], str | None]] = {"SQLite, wall and CPU": lambda _: None}
        if binaries := find_binaries():
            postgresql = stack.enter_context(PostgresServer(binaries))
            databases["PostgreSQL, wall"] = lambda _: postgresql.new_database()
        for count in counts:
            for title, url in databases.items():
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lists-")))
                heads.append(f"{count:,} runs, {title}")
                with LocalServer(folder / "runs", database=url(folder)).running() as local:
                    fill(local, count)
                    for name, wall, cpu in measured(local, arguments.only):
                        cell = f"{wall:.1f}, {cpu:.1f}" if "CPU" in title else f"{wall:.1f}"
                        cells.setdefault(name, []).append(cell)
    print(machine())
    print(table(heads, *([name, *values] for name, values in cells.items())))


if __name__ == "__main__":
    main()
