"""Measure the service under load: `uv run python benchmarks/service.py`.

1. 200 runs of an agent that does nothing, queued by 20 clients, with 8 workers, while others read.
2. 50 followers of one run's log.
3. 10,000 runs in the store: the server's start, its memory, lists and filters.
4. 10,000 queued runs of 20 users: the time that the scheduler needs to read them.

Each part fails if a guarantee is violated: all runs done, no run started twice, the whole log received by all
followers. `--check` runs smaller versions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
from _measuring import machine, table
from mleredux_support.server import ServerProcess

PLUGIN = """
from mleredux import hookimpl
from mleredux.models import Agent, Limits

mleredux_contract = 2
LIMITS = Limits(time_limit=600, cpus=0.25, memory_mb=128, disk_mb=50)
COPY = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" "$MLEREDUX_SUBMISSION"'
TALK = "i=0; while [ $i -lt $MLEREDUX_SEED ]; do i=$((i+1)); echo line $i of a log that many follow; sleep 0.01; done; "


@hookimpl
def mleredux_register_agents():
    return [
        Agent(id="noop", title="Nothing", command=("sh", "-c", "echo begun; " + COPY), limits=LIMITS),
        Agent(id="talker", title="Talks", command=("sh", "-c", TALK + COPY), limits=LIMITS),
    ]
"""
RUN = {"task": "toy", "agent": "noop", "sandbox": "process"}
FINAL = {"done", "failed", "timed_out", "cancelled"}


@dataclass
class Times:
    """Durations of requests in seconds."""

    taken: list[float] = field(default_factory=list)

    def of(self, ask: Callable[[], httpx.Response]) -> httpx.Response:
        """Send a request, and record its duration."""
        began = time.perf_counter()
        answer = ask()
        self.taken.append(time.perf_counter() - began)
        assert answer.status_code < 300, f"{answer.status_code} {answer.text[:300]}"
        return answer

    def ms(self, share: float) -> str:
        """Return a percentile in milliseconds."""
        ordered = sorted(self.taken)
        return f"{ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000:.0f}"


@contextmanager
def serving(home: Path, *options: str) -> Iterator[tuple[ServerProcess, psutil.Process]]:
    """Start a server with the agents above; yield the server and its process."""
    (home / "noop_agents.py").write_text(PLUGIN, encoding="utf-8")
    env = {"MLEREDUX_PLUGINS": f"mleredux_testing.toys,{home / 'noop_agents.py'}", "MLEREDUX_CPUS": "2"}
    more = ("--data-dir", str(home / "data"), "--log-level", "warning", "--requests-per-minute", "1000000")
    with ServerProcess(home / "runs", *more, *options, env=env) as server:
        yield server, psutil.Process(server.process.pid)


def client(server: ServerProcess) -> httpx.Client:
    """Return a client with its own connection."""
    return httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=120)


def cpu_of(process: psutil.Process) -> float:
    """Return CPU seconds of a process so far."""
    used = process.cpu_times()
    return float(used.user + used.system)


def memory_mb(process: psutil.Process) -> float:
    """Return the private memory of a process in MB."""
    return float(process.memory_info().rss) / 2**20


def queue(home: Path, runs: int, clients: int) -> list[Sequence[str]]:
    """Queue runs from many clients, and read at the same time."""
    posts, reads, over = Times(), Times(), threading.Event()
    with serving(home, "--workers", "8") as (server, process):
        with client(server) as http:  # prepare the task's data once, in advance
            wait_for_all(http, [http.post("/v1/runs", json=RUN).json()["id"]])
        before, began = cpu_of(process), time.perf_counter()

        def create(number: int) -> list[str]:
            with client(server) as http:
                requests = [{**RUN, "seed": number * 1000 + one} for one in range(runs // clients)]
                return [str(posts.of(lambda one=one: http.post("/v1/runs", json=one)).json()["id"]) for one in requests]

        def read() -> None:
            with client(server) as http:
                while not over.is_set():
                    newest = reads.of(lambda: http.get("/v1/runs", params={"limit": 50})).json()["items"][0]
                    reads.of(partial(http.get, f"/v1/runs/{newest['id']}"))
                    reads.of(lambda: http.get("/v1/runs", params={"status": "running"}))

        with ThreadPoolExecutor(clients + 2) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            ids = [run_id for some in pool.map(create, range(clients)) for run_id in some]
            accepted = time.perf_counter() - began
            try:
                with client(server) as http:
                    wait_for_all(http, ids)
            finally:
                over.set()
            took = time.perf_counter() - began
            for reader in readers:
                reader.result()
        with client(server) as http:
            metrics = http.get("/metrics").text
        cpu, memory = cpu_of(process) - before, memory_mb(process)
    check_once(home / "runs", ids)
    assert f'mleredux_jobs_started_total{{kind="run"}} {len(ids) + 1}.0' in metrics, "each was handed out once"
    return [
        ("runs, all done, each started once", f"{len(ids)}"),
        ("until all were accepted, s", f"{accepted:.1f}"),
        ("a run accepted in, ms (p50 / p99)", f"{posts.ms(0.5)} / {posts.ms(0.99)}"),
        ("until all were done, s", f"{took:.1f}"),
        ("runs per minute", f"{len(ids) / took * 60:.0f}"),
        ("reads meanwhile, per second (2 readers)", f"{len(reads.taken) / took:.0f}"),
        ("a read, ms (p50 / p99)", f"{reads.ms(0.5)} / {reads.ms(0.99)}"),
        ("CPU of the server's process, s", f"{cpu:.1f}"),
        ("its memory afterwards, MB", f"{memory:.0f}"),
    ]


def wait_for_all(http: httpx.Client, ids: Sequence[str], seconds: float = 1800) -> None:
    """Wait until all runs have ended, successfully."""
    unfinished, until = set(ids), time.monotonic() + seconds
    while unfinished:
        assert time.monotonic() < until, f"{len(unfinished)} runs did not end"
        time.sleep(0.5)
        page: dict[str, Any] = {"next": ""}
        while page["next"] is not None:
            more = {"cursor": page["next"]} if page["next"] else {}
            page = http.get("/v1/runs", params={"limit": 500, **more}).json()
            for run in page["items"]:
                if run["id"] in unfinished and run["status"] in FINAL:
                    assert run["status"] == "done", run
                    unfinished.discard(run["id"])


def check_once(runs_dir: Path, ids: Sequence[str]) -> None:
    """Check that each run exists once, ran once, and has no gaps in its events."""
    assert len(set(ids)) == len(ids)
    for run_id in ids:
        log = (runs_dir / run_id / "logs" / "agent.log").read_text(encoding="utf-8")
        assert log.count("begun") == 1, f"{run_id} was started {log.count('begun')} times"
        events = [json.loads(line) for line in (runs_dir / run_id / "events.jsonl").read_text().splitlines()]
        assert [event["seq"] for event in events] == list(range(len(events))), run_id


def follow(home: Path, followers: int, lines: int) -> list[Sequence[str]]:
    """Let many clients follow one log."""
    with serving(home, "--workers", "1") as (server, process):
        with client(server) as http:
            wait_for_all(http, [http.post("/v1/runs", json=RUN).json()["id"]])
            run_id = str(http.post("/v1/runs", json={**RUN, "agent": "talker", "seed": lines}).json()["id"])
            while http.get(f"/v1/runs/{run_id}").json()["status"] not in ("running", *FINAL):
                time.sleep(0.05)
        before, memory, began = cpu_of(process), memory_mb(process), time.perf_counter()
        peak, texts = asyncio.run(_all_follow(server, process, run_id, followers))
        took, cpu = time.perf_counter() - began, cpu_of(process) - before
    log = (home / "runs" / run_id / "logs" / "agent.log").read_text(encoding="utf-8")
    assert log.count("line ") == lines
    assert all(text == log for text in texts), "each has all of it, once"
    return [
        ("followers, each with all of the log", f"{followers}"),
        ("lines / bytes of the log", f"{lines} / {len(log)}"),
        ("it went on for, s", f"{took:.1f}"),
        ("CPU of the server's process, s (share of a core)", f"{cpu:.1f} ({cpu / took:.0%})"),
        ("its memory before / at most, MB", f"{memory:.0f} / {peak:.0f}"),
    ]


async def _all_follow(
    server: ServerProcess, process: psutil.Process, run_id: str, followers: int
) -> tuple[float, list[str]]:
    headers = {"Authorization": f"Bearer {server.token}", "Accept": "text/event-stream"}
    peak = 0.0
    limits = httpx.Limits(max_connections=followers)
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=120, limits=limits) as http:

        async def one() -> str:
            text = []
            async with http.stream("GET", f"/v1/runs/{run_id}/logs/agent.log") as stream:
                assert stream.status_code == 200
                kind = ""
                async for line in stream.aiter_lines():
                    if line.startswith("event: "):
                        kind = line.removeprefix("event: ")
                    elif line.startswith("data: ") and kind == "log":
                        text.append(json.loads(line.removeprefix("data: "))["text"])
                    elif line.startswith("data: ") and kind == "end":
                        return "".join(text)
            raise AssertionError("the stream ended without its end")

        async def watch() -> None:
            nonlocal peak
            while True:
                peak = max(peak, memory_mb(process))
                await asyncio.sleep(0.2)

        watching = asyncio.create_task(watch())
        try:
            texts = list(await asyncio.gather(*(one() for _ in range(followers))))
            return max(peak, memory_mb(process)), texts
        finally:
            watching.cancel()


def stored(home: Path, count: int) -> list[Sequence[str]]:
    """Fill a store with runs, and measure requests."""
    with serving(home) as (server, process), client(server) as http:
        done = str(http.post("/v1/runs", json={**RUN, "labels": {"of": "benchmark"}}).json()["id"])
        wait_for_all(http, [done])
        empty = memory_mb(process)
    copy_run(home / "runs", done, count - 1)
    rows: list[Sequence[str]] = [("memory of the server with 1 run, MB", f"{empty:.0f}")]
    began = time.perf_counter()
    with serving(home) as (_, process):
        rows.append(("first start, which takes all of them in, s", f"{time.perf_counter() - began:.1f}"))
        rows.append(("memory then, MB", f"{memory_mb(process):.0f}"))
    began = time.perf_counter()
    with serving(home) as (server, process), client(server) as http:
        rows.append(("later starts, s", f"{time.perf_counter() - began:.1f}"))
        for name, query in {
            "first page of 50, ms": {},
            "page of 500, ms": {"limit": 500},
            "filtered by status and label, ms": {"status": "done", "label": "of:benchmark"},
            "filtered, none fits, ms": {"status": "failed", "task": "toy"},
            "sorted by score, ms": {"sort": "-score"},
        }.items():
            times = Times()
            for _ in range(20):
                times.of(lambda query=query: http.get("/v1/runs", params=query))
            rows.append((f"{name} (median of 20)", f"{statistics.median(times.taken) * 1000:.0f}"))
        began, seen, page = time.perf_counter(), 0, {"next": ""}
        while page["next"] is not None:
            more = {"cursor": page["next"]} if page["next"] else {}
            page = http.get("/v1/runs", params={"limit": 500, **more}).json()
            seen += len(page["items"])
        assert seen == count, f"{seen} of {count} runs were listed"
        rows.append((f"all {count}, in pages of 500, s", f"{time.perf_counter() - began:.2f}"))
        began = time.perf_counter()
        address = http.post("/v1/runs", json=RUN).headers["Location"]
        while http.get(address).json()["status"] not in FINAL:
            time.sleep(0.05)
        rows.append(("a new run, until it is done, s", f"{time.perf_counter() - began:.1f}"))
        rows.append(("memory after all that, MB", f"{memory_mb(process):.0f}"))
    return rows


def waiting(home: Path, users: int, runs: int) -> list[Sequence[str]]:
    """Let the scheduler read a long queue, on a fully loaded machine."""
    from mleredux._core.plugins import Catalogue
    from mleredux_server.accounts.accounts import make_user
    from mleredux_server.app import make_service
    from mleredux_server.database.tables import Job, Project, now
    from mleredux_server.scheduler.dispatcher import Dispatcher
    from mleredux_server.settings import Settings
    from sqlalchemy import insert, select

    settings = Settings(runs_dir=home / "runs", data_dir=home / "data", workers=1)
    service = make_service(settings, Catalogue(load=["mleredux_testing.toys"]))
    with service.database.writing() as session:
        whose = []
        for number in range(users):
            user = make_user(session, f"user{number}")
            whose.append((user.id, session.scalars(select(Project.id).where(Project.name == user.name)).one()))
        like = {"kind": "run", "cpus": 1.0, "memory_mb": 100, "gpus": 0, "disk_mb": 1, "priority": 0}
        rows = []
        for number in range(runs):
            user_id, project_id = whose[number % users]
            row = {**like, "id": f"run-{number:06d}", "user_id": user_id, "project_id": project_id}
            rows.append({**row, "state": "queued" if number else "started", "created_at": now(), "queued_at": now()})
        session.execute(insert(Job), rows)
    dispatcher, took = Dispatcher(service), []
    for _ in range(6):
        began, cpu = time.perf_counter(), time.thread_time()
        dispatcher._start_runs()
        took.append((time.perf_counter() - began, time.thread_time() - cpu))
    service.database.close()
    first, *later = took
    return [
        ("first look, which writes what they wait for, s (its CPU)", f"{first[0]:.2f} ({first[1]:.2f})"),
        ("later looks, s (CPU; median of 5)", f"{statistics.median(one[1] for one in later):.2f}"),
    ]


def copy_run(runs_dir: Path, source: str, count: int) -> None:
    """Copy the directory of a run under new names."""
    files = [path for path in (runs_dir / source).rglob("*") if path.is_file() and "output" not in path.parts]
    texts = {path.relative_to(runs_dir / source): path.read_bytes() for path in files}
    for number in range(count):
        name = f"{source[:-12]}{number:012x}"
        for path, text in texts.items():
            copy = runs_dir / name / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(text.replace(source.encode(), name.encode()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="do less of each")
    parser.add_argument("--part", choices=["queue", "follow", "store", "waiting"], action="append", help="only this")
    options = parser.parse_args()
    parts: dict[str, tuple[str, Callable[..., list[Sequence[str]]], tuple[int, ...]]] = {
        "queue": ("{0} queued runs, 8 workers, {1} clients", queue, (20, 4) if options.check else (200, 20)),
        "follow": ("{0} followers of one log", follow, (5, 200) if options.check else (50, 2000)),
        "store": ("{0} runs in the store", stored, (200,) if options.check else (10_000,)),
        "waiting": ("{1} queued runs of {0} users", waiting, (5, 100) if options.check else (20, 10_000)),
    }
    print(machine() + "\n")
    for name in options.part or parts:
        title, measure, sizes = parts[name]
        with tempfile.TemporaryDirectory() as folder:
            rows = measure(Path(folder), *sizes)
        print(table((title.format(*sizes), ""), *rows) + "\n", flush=True)


if __name__ == "__main__":
    main()
