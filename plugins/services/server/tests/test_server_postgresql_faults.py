"""Faults of PostgreSQL that pass by themselves: requests are refused in time, and no run is lost or started twice."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from mleredux_support.postgresql import PostgresServer, find_binaries
from mleredux_support.server import ServerProcess
from mleredux_support.server_local import LocalServer
from mleredux_testing.pytest_plugin import skip_or_fail

pytestmark = pytest.mark.postgresql
RUN: dict[str, Any] = {"task": "digits", "agent": "dummy", "sandbox": "process"}
SLOW = str(Path(__file__).parent / "slow_agent")


def client(url: str, token: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30)


@contextmanager
def faulty(fault: str, server: PostgresServer, url: str, release: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Let PostgreSQL have a fault that passes, after `release` has closed the service's connections."""
    import psycopg

    change, reload = "ALTER SYSTEM {} default_transaction_read_only{}", "SELECT pg_reload_conf()"
    with ExitStack() as stack:
        if fault == "read-only":  # as after a failover to a standby
            writable = psycopg.connect(server.url(), autocommit=True)
            stack.enter_context(writable)
            for statement in (change.format("SET", " = on"), reload):
                writable.execute(statement.encode())
            writable.execute(b"SET default_transaction_read_only = off")
            for statement in (reload, change.format("RESET", "")):  # in reverse order
                stack.callback(writable.execute, statement.encode())
            wait_for(lambda: psycopg.connect(server.url()).execute("SHOW transaction_read_only").fetchone() == ("on",))
        elif fault == "statement timeout":
            changed = psycopg.connect(server.url(), autocommit=True, options="-c statement_timeout=0")
            stack.enter_context(changed)
            for statement in ("ALTER SYSTEM SET statement_timeout = 1", reload):
                changed.execute(statement.encode())
            for statement in (reload, "ALTER SYSTEM RESET statement_timeout"):  # in reverse order
                stack.callback(changed.execute, statement.encode())
            wait_for(lambda: _is_cancelled(server))
            locking = psycopg.connect(url, options="-c statement_timeout=0")
            stack.enter_context(locking).execute("LOCK TABLE jobs, runs IN ACCESS EXCLUSIVE MODE")
        elif fault == "locked":
            stack.enter_context(psycopg.connect(url)).execute("LOCK TABLE jobs, runs IN ACCESS EXCLUSIVE MODE")
        elif fault == "no free connection":
            release()
            with suppress(psycopg.OperationalError):
                while True:
                    stack.enter_context(psycopg.connect(server.url()))
        else:
            server.stop()
            stack.callback(server.start)
        yield


@pytest.fixture
def small_postgres(root: None, tmp_path: Path) -> Iterator[tuple[PostgresServer, Path]]:
    """A PostgreSQL server with a small file system for its data, and the root of that file system."""
    binaries, image = find_binaries(), tmp_path / "disk.img"
    if binaries is None:
        skip_or_fail("postgresql", "PostgreSQL is not installed (see .ci/postgresql)")
    with image.open("wb") as file:
        file.truncate(160 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    with TemporaryDirectory(prefix="mleredux-disk-", ignore_cleanup_errors=True) as place:
        subprocess.run(["mount", "-o", "loop", image, place], check=True)
        os.chmod(place, 0o755)  # PostgreSQL runs as another user
        try:
            with PostgresServer(binaries, Path(place)) as server:
                yield server, Path(place)
        finally:
            subprocess.run(["umount", "--lazy", place], check=True)


def fill(disk: Path) -> Path:
    """Use all free space of a file system by one file."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass
    return filler


def test_runs_wait_while_the_disk_of_postgresql_is_full_and_are_done_once(
    small_postgres: tuple[PostgresServer, Path], tmp_path: Path
) -> None:
    postgres, disk = small_postgres
    env = {"MLEREDUX_PLUGINS": SLOW, "MLEREDUX_DATABASE": postgres.new_database()}
    runs, full = tmp_path / "runs", "The server's disk is full; nothing was changed."
    with ServerProcess(runs, "--workers", "1", env=env) as server, client(server.url, server.token) as http:

        def new(seed: int) -> httpx.Response:
            labels = {f"name-{number}": "v" * 60 for number in range(10)}
            return http.post("/v1/runs", json={**RUN, "agent": "slow", "seed": seed, "labels": labels})

        ids = [new(seed).json()["id"] for seed in (20, 1, 2)]
        wait_for(lambda: http.get(f"/v1/runs/{ids[0]}").json()["status"] == "running")
        filler = fill(disk)
        for seed in range(3, 100):  # until the space inside the tables' files is used too
            answer = new(seed)
            if answer.status_code != 201:
                break
            ids.append(answer.json()["id"])
        assert (answer.status_code, answer.json()["detail"]) == (507, full)

        def checks() -> dict[str, str]:
            return {
                check["name"]: check["message"] for check in http.get("/readyz").json()["checks"] if not check["ok"]
            }

        wait_for(lambda: checks().get("dispatcher") == f"The dispatcher can't continue: {full}", checks)
        assert http.get("/readyz").status_code == 503

        def waiting() -> list[str]:
            shown = [http.get(f"/v1/runs/{run}").json() for run in ids]
            assert {run["status"] for run in shown} <= {"queued", "preparing", "building", "running", "grading", "done"}
            return [run["waiting_for"] for run in shown]

        wait_for(lambda: full in waiting(), waiting)
        assert http.get("/v1/runs").status_code == 200
        assert http.get("/healthz").status_code == 200
        filler.unlink()
        wait_for(lambda: {http.get(f"/v1/runs/{run}").json()["status"] for run in ids} == {"done"}, seconds=240)
        wait_for(lambda: http.get("/readyz").status_code == 200)
        assert set(waiting()) == {None}
        assert sorted(run["id"] for run in http.get("/v1/runs").json()["items"]) == sorted(ids), (
            "the refused one is gone"
        )
        for run in ids:
            assert (runs / run / "events.jsonl").read_text().count('"state":"running"') == 1
            assert (runs / run / "logs" / "agent.log").read_text().count("begun") == 1


def _is_cancelled(server: PostgresServer) -> bool:
    import psycopg

    try:
        psycopg.connect(server.url()).execute("SELECT pg_sleep(0.1)")
    except psycopg.errors.QueryCanceled:
        return True
    return False


@pytest.mark.parametrize("fault", ["read-only", "locked", "no free connection", "stopped", "statement timeout"])
def test_requests_are_refused_in_time_until_a_fault_of_postgresql_has_passed(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr("mleredux_server.database.engine.BUSY_SECONDS", 1.0)
    place = LocalServer(tmp_path / "runs", database=(url := postgres_server.new_database()))
    key = {"Idempotency-Key": "the-same"}
    with place.running() as local, client(local.url, local.token) as http:
        assert http.post("/v1/runs", json=RUN).status_code == 201
        with faulty(fault, postgres_server, url, local.service.database.engine.dispose):
            refused = http.post("/v1/runs", json=RUN, headers=key)
            assert (refused.status_code, refused.headers.get("Retry-After")) == (503, "1"), refused.text
            word = "read-only now" if fault == "read-only" else "not responding"
            assert refused.json()["detail"] == f"The database is {word}."
            assert http.get("/v1/runs").status_code == (200 if fault == "read-only" else 503)
            assert http.get("/readyz").status_code == 503
            assert http.get("/healthz").status_code == 200
        wait_for(lambda: http.get("/readyz").status_code == 200)
        created = http.post("/v1/runs", json=RUN, headers=key)
        assert created.status_code == 201, created.text
        assert len(http.get("/v1/runs").json()["items"]) == 2
        assert sorted(local.service.store.ids()) == sorted(run["id"] for run in http.get("/v1/runs").json()["items"])


def wait_for(met: Callable[[], Any], details: Callable[[], Any] = lambda: "", seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := met()):
        assert time.monotonic() < deadline, f"waited in vain: {details()}"
        time.sleep(0.1)
    return value


def test_nothing_is_lost_while_postgresql_is_down(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """It crashes while one run is running and one waits; meanwhile clients are told to retry."""
    options = ("--workers", "1", "--log-format", "json")
    env = {"MLEREDUX_PLUGINS": SLOW, "MLEREDUX_DATABASE": postgres_server.new_database()}
    with ServerProcess(tmp_path / "runs", *options, env=env) as server, client(server.url, server.token) as http:
        quick = http.post("/v1/runs", json=RUN).json()["id"]

        def status(run_id: str) -> str:
            return str(http.get(f"/v1/runs/{run_id}").json()["status"])

        wait_for(lambda: status(quick) == "done")
        slow, waiting = (
            http.post("/v1/runs", json={**RUN, "agent": "slow", "seed": seed}).json()["id"] for seed in (60, 1)
        )
        wait_for(lambda: status(slow) == "running")

        postgres_server.stop(signal.SIGQUIT)
        try:
            time.sleep(1)
            for ask in (
                lambda: http.get("/v1/runs"),
                lambda: http.post("/v1/runs", json=RUN),
                lambda: client(server.url, "mlr_" + "x" * 40).get("/v1/runs"),
            ):
                answer = ask()
                assert answer.status_code == 503
                assert int(answer.headers["Retry-After"]) >= 1
                assert answer.json()["type"] == "urn:mleredux:problem:unavailable"
            assert http.get("/healthz").status_code == 200
            ready = http.get("/readyz")
            assert ready.status_code == 503
            assert "mleredux_database_up 0" in http.get("/metrics").text
            time.sleep(2)
        finally:
            postgres_server.start()

        wait_for(lambda: http.get("/readyz").status_code == 200)
        wait_for(
            lambda: status(slow) == "done" and status(waiting) == "done",
            lambda: (http.get("/v1/runs").json()["items"], server.log[-40:]),
        )
        items = http.get("/v1/runs").json()["items"]
        assert {run["id"]: run["status"] for run in items} == {quick: "done", slow: "done", waiting: "done"}
        events = http.get(f"/v1/runs/{slow}/events").json()["items"]
        assert [event["seq"] for event in events] == list(range(events[0]["seq"], events[0]["seq"] + len(events)))
        assert [event["data"]["state"] for event in events if event["type"] == "state"].count("running") == 1
        said_by_agent = (server.runs_dir / slow / "logs" / "agent.log").read_text(encoding="utf-8")
        assert said_by_agent.count("begun") == 1
    log = "\n".join(server.log)
    assert postgres_server.password not in log + ready.text
    assert "Traceback" not in "".join(line for line in server.log if '"exception"' not in line)


@pytest.mark.parametrize("fault", ["read-only", "locked", "no free connection"])
def test_runs_that_end_and_wait_during_a_fault_of_postgresql_are_done_once(
    postgres_server: PostgresServer, tmp_path: Path, fault: str
) -> None:
    env = {"MLEREDUX_PLUGINS": SLOW, "MLEREDUX_DATABASE": (url := postgres_server.new_database())}
    runs = tmp_path / "runs"
    with ServerProcess(runs, "--workers", "1", env=env) as server, client(server.url, server.token) as http:
        requests = [{**RUN, "agent": "slow", "seed": seed} for seed in (30, 1)]
        ids = [http.post("/v1/runs", json=run).json()["id"] for run in requests]
        logs = [runs / run / "logs" / "agent.log" for run in ids]
        wait_for(lambda: logs[0].is_file() and "begun" in logs[0].read_text())
        with faulty(fault, postgres_server, url):
            wait_for(lambda: "done" in logs[0].read_text())
            time.sleep(2)
        wait_for(lambda: http.get("/readyz").status_code == 200)
        wait_for(lambda: {http.get(f"/v1/runs/{run}").json().get("status") for run in ids} == {"done"})
        for run, log in zip(ids, logs, strict=True):
            events = http.get(f"/v1/runs/{run}/events").json()["items"]
            assert [event["seq"] for event in events] == list(range(events[0]["seq"], events[0]["seq"] + len(events)))
            assert [event["data"]["state"] for event in events if event["type"] == "state"].count("running") == 1
            assert log.read_text().count("begun") == 1


@pytest.mark.parametrize("late", ["at once", "once it ends"])
def test_a_run_preempted_while_postgresql_is_down_makes_room_and_starts_again(
    postgres_server: PostgresServer, tmp_path: Path, late: str
) -> None:
    env = {"MLEREDUX_PLUGINS": SLOW, "MLEREDUX_DATABASE": postgres_server.new_database(), "MLEREDUX_CPUS": "1"}
    options = ("--workers", "2", "--log-format", "json")
    with ServerProcess(tmp_path / "runs", *options, env=env) as server, client(server.url, server.token) as http:

        def new(**more: Any) -> str:
            return str(http.post("/v1/runs", json={**RUN, "agent": "slow", "limits": {"cpus": 1}, **more}).json()["id"])

        def status(run_id: str) -> str:
            return str(http.get(f"/v1/runs/{run_id}").json().get("status"))

        first = new(seed=50, preemptible=True)
        wait_for(lambda: status(first) == "running")
        second = new(seed=10)
        wait_for(lambda: late == "at once" or status(first) != "running")
        postgres_server.stop(signal.SIGQUIT)
        try:
            time.sleep(5)
        finally:
            postgres_server.start()
        wait_for(
            lambda: [status(run) for run in (first, second)] == ["done", "done"],
            lambda: (http.get("/v1/runs").json()["items"], server.log[-20:]),
        )
        assert sorted(run["id"] for run in http.get("/v1/runs").json()["items"]) == sorted((first, second))
        texts = [(tmp_path / "runs" / run / "events.jsonl").read_text() for run in (first, second)]
        assert [text.count('"state":"done"') for text in texts] == [1, 1]
        assert [http.get(f"/v1/runs/{run}").json()["score"] is not None for run in (first, second)] == [True, True]


@pytest.mark.parametrize("stopping", [signal.SIGQUIT, signal.SIGKILL])
def test_an_experiment_continues_with_its_next_arm_after_postgresql_was_down(
    postgres_server: PostgresServer, tmp_path: Path, stopping: signal.Signals
) -> None:
    env = {"MLEREDUX_PLUGINS": SLOW, "MLEREDUX_DATABASE": postgres_server.new_database()}
    options = ("--workers", "1", "--log-format", "json")
    with ServerProcess(tmp_path / "runs", *options, env=env) as server, client(server.url, server.token) as http:
        arms = {name: {"agent": "slow", "sandbox": "process"} for name in ("a", "b")}
        plan = {"experiment": {"name": "arms", "tasks": ["digits"], "seeds": [5]}, "arms": arms}
        experiment = http.post("/v1/experiments", json={"plan": plan}).json()
        own = f"/v1/experiments/{experiment['id']}"
        wait_for(lambda: http.get(own).json()["counts"].get("done"))
        postgres_server.stop(stopping)
        try:
            time.sleep(3)
        finally:
            postgres_server.start()
        wait_for(
            lambda: (answer := http.get(own)).status_code == 200 and answer.json()["counts"] == {"done": 2},
            lambda: (http.get(own).text, server.log[-20:]),
        )
        runs = http.get(own).json()["runs"]
        assert sorted(run["arm"] for run in runs) == ["a", "b"]
        logs = [(server.runs_dir / run["id"] / "logs" / "agent.log").read_text() for run in runs]
        assert [log.count("begun") for log in logs] == [1, 1]
