"""Leases: workers that stand still, plugins that never return, and cancellations that are ignored."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from mleredux._core.plugins import Catalogue
from mleredux._core.store import Run, RunStore
from mleredux_server.app import make_service
from mleredux_server.database.tables import now
from mleredux_server.scheduler.jobs import Started
from mleredux_server.scheduler.leases import CANCEL_SECONDS, Leases
from mleredux_server.scheduler.tally import Tally
from mleredux_server.settings import Settings
from mleredux_support.server import ServerProcess
from prometheus_client.parser import text_string_to_metric_families

FOLDER = Path(__file__).parent / "recovery"
DEADLOCK, LOOP = 1, 2  # seeds of toy_hanging.py
FINAL = {"done", "failed", "timed_out", "cancelled"}
_TO_END = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("leases")
    (home / "counts").mkdir()
    env = {
        "MLEREDUX_PLUGINS": f"mleredux_testing.toys,{FOLDER / 'toy_counting.py'},{FOLDER / 'toy_hanging.py'}",
        "COUNTS": str(home / "counts"),
        "MLEREDUX_CPUS": "8",
        "MLEREDUX_MEMORY_MB": "8000",
    }
    options = ("--data-dir", str(home / "data"), "--workers", "4", "--lease", "5s", "--stall-limit", "3s")
    with ServerProcess(home / "runs", *options, env=env) as started:
        yield started


def new(http: httpx.Client, seed: int, **asked: Any) -> str:
    same = {"task": "toy", "agent": "counting", "seed": seed, "verify": False}
    answer = http.post("/v1/runs", json={**same, **asked})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def until(there: Callable[[], Any], seconds: float = 150) -> Any:
    end = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.1)
    return found


def ended(http: httpx.Client, run_id: str) -> dict[str, Any] | None:
    shown: dict[str, Any] = http.get(f"/v1/runs/{run_id}").json()
    return shown if shown["status"] in FINAL else None


def run_of(server: ServerProcess, run_id: str) -> Run:
    return Run(RunStore(server.runs_dir).path / run_id)


def worker_of(run: Run) -> int:
    return int(json.loads((run.path / ".lease").read_bytes())["pid"])


def agents(run: Run) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("MLEREDUX_RUN_ID") == run.id and process.status() != "zombie":
                found.append(process)
    return found


def test_the_run_of_a_stopped_worker_goes_on_with_its_agent(server: ServerProcess, http: httpx.Client) -> None:
    run_id = new(http, 9999)
    counts = server.runs_dir.parent / "counts"
    until((counts / run_id).exists)
    run = run_of(server, run_id)
    stopped = worker_of(run)
    os.kill(stopped, signal.SIGSTOP)
    until(lambda: not psutil.pid_exists(stopped) or psutil.Process(stopped).status() == "zombie")
    until(lambda: "adopted" in [event.data["status"] for event in run.events() if event.type == "agent"])
    (counts / "go on").touch()
    shown = until(lambda: ended(http, run_id))
    (counts / "go on").unlink()
    assert (shown["status"], len((counts / run_id).read_text().split())) == ("done", 1), shown["message"]
    assert [event.seq for event in run.events()] == list(range(len(run.events())))
    text = httpx.get(f"{server.url}/metrics", timeout=60).text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    killed = {
        (sample.labels["kind"], sample.labels["reason"]): sample.value
        for sample in families["mleredux_jobs_taken_away"].samples
    }
    assert killed["run", "lease"] >= 1 and "mleredux_lease_age_seconds" in families


def test_a_preemptible_run_makes_room_and_runs_again(server: ServerProcess, http: httpx.Client) -> None:
    counts, whole = server.runs_dir.parent / "counts", {"cpus": 8}
    first = new(http, 9999, preemptible=True, limits=whole)
    until((counts / first).exists)
    second, other = new(http, 9999, limits=whole), new(http, 9999, preemptible=True, limits=whole)
    until((counts / second).exists)
    run = run_of(server, first)
    assert not agents(run)
    shown = until(lambda: (it := http.get(f"/v1/runs/{first}").json())["queue"] and it)
    assert shown["status"] == "preempted" and shown["waiting_for"] and shown["queue"]["position"] >= 1
    listed = http.get("/v1/runs", params={"status": "preempted"}).json()["items"]
    assert [one["id"] for one in listed] == [first]
    working = http.get("/v1/runs", params={"status": ["preparing", "building", "running"]}).json()["items"]
    assert [one["id"] for one in working] == [second], "their CPUs are not more than the machine has"
    (counts / "go on").touch()
    shown = [until(lambda name=name: ended(http, name)) for name in (first, second, other)]
    (counts / "go on").unlink()
    assert [one["status"] for one in shown] == ["done"] * 3, [one["message"] for one in shown]
    starts = {name: len((counts / name).read_text().split()) for name in (first, second, other)}
    assert starts == {first: 2, second: 1, other: 1}
    assert "interrupted" in [event.data["status"] for event in run.events() if event.type == "attempt"]


def test_a_plugin_that_deadlocks_fails_its_run_with_a_cause(server: ServerProcess, http: httpx.Client) -> None:
    run_id = new(http, DEADLOCK)
    shown = until(lambda: ended(http, run_id))
    assert (shown["status"], shown["cause"]) == ("failed", "environment_broke")
    assert "The last one was killed: It did not renew its lease for" in shown["message"]


def test_a_cancellation_that_a_plugin_ignores_takes_effect(server: ServerProcess, http: httpx.Client) -> None:
    looping, stopped = new(http, LOOP), new(http, 9999)
    runs = {run_id: run_of(server, run_id) for run_id in (looping, stopped)}
    until(lambda: runs[looping].state == "producing")
    until(lambda: agents(runs[stopped]))
    os.kill(worker_of(runs[stopped]), signal.SIGSTOP)
    asked = {run_id: time.monotonic() for run_id in runs if http.post(f"/v1/runs/{run_id}/cancel").is_success}
    for run_id, run in runs.items():
        shown = until(lambda: ended(http, run_id))  # noqa: B023 - called immediately
        assert shown["status"] == "cancelled" and time.monotonic() - asked[run_id] < _TO_END
        assert not agents(run) and not run.alive


def test_time_in_which_the_server_stood_still_does_not_count(tmp_path: Path) -> None:
    service = make_service(Settings(runs_dir=tmp_path / "runs", stage_limit=100), Catalogue())
    leases, job = Leases(service, Tally()), Started("a", "grade", 1, now(), None, None)
    job.read_at -= 3600
    assert leases.overdue(job, starting=False) is None
    job.silent = 31
    assert leases.overdue(job, starting=True) is None
    found = leases.overdue(job, starting=False)
    assert found is not None and found[0] == "lease"
    service.database.close()


def test_each_stage_has_a_deadline_though_its_worker_renews_the_lease(tmp_path: Path) -> None:
    service = make_service(Settings(runs_dir=tmp_path / "runs", stage_limit=100), Catalogue())
    leases, job = Leases(service, Tally()), Started("a", "run", 1, now(), None, None)
    for stage, limit in ((("running", 50.0), 50), (("producing", 0.0), 100)):
        job.stage = stage
        assert leases.overdue(job, starting=False) is None and job.in_stage < 3
        job.in_stage = limit + 1
        found = leases.overdue(job, starting=False)
        assert found is not None and found[0] == "deadline" and stage[0] in found[1]
    assert CANCEL_SECONDS < _TO_END
    service.database.close()
