"""Faults under a server: its database locked, its disk full, its clock set, the Docker engine restarted."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from mleredux_server.runs.creation import remove_partial
from mleredux_support.server import ServerProcess
from mleredux_support.server_local import LocalServer
from mleredux_testing.pytest_plugin import skip_or_fail
from sqlalchemy.exc import OperationalError

RUN: dict[str, Any] = {"task": "digits", "agent": "dummy", "sandbox": "process"}
PLUGINS = {"MLEREDUX_PLUGINS": str(Path(__file__).parent / "slow_agent")}


def slow(tenths: int, **more: Any) -> dict[str, Any]:
    """A run that takes the given tenths of a second."""
    return {**RUN, "agent": "slow", "seed": tenths, **more}


class Asking:
    """A client of a server, with the tests' requests."""

    def __init__(self, server: ServerProcess) -> None:
        self.http = httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=60)
        self.runs_dir = server.runs_dir

    def make(self, asked: dict[str, Any]) -> str:
        made = self.http.post("/v1/runs", json=asked)
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def run(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/v1/runs/{run_id}").json()
        return found

    def status(self, run_id: str) -> str:
        return str(self.run(run_id)["status"])

    def until(self, run_id: str, *statuses: str, seconds: float = 90) -> str:
        return str(wait_for(lambda: (found := self.status(run_id)) in statuses and found, seconds))

    def check(self, name: str) -> bool:
        return bool({one["name"]: one["ok"] for one in self.http.get("/readyz").json()["checks"]}[name])

    def states(self, run_id: str) -> list[str]:
        items = self.http.get(f"/v1/runs/{run_id}/events", params={"limit": 500}).json()["items"]
        assert [item["seq"] for item in items] == list(range(items[0]["seq"], items[0]["seq"] + len(items)))
        return [item["data"]["state"] for item in items if item["type"] == "state"]

    def agent_log(self, run_id: str) -> str:
        return (self.runs_dir / run_id / "logs" / "agent.log").read_text(encoding="utf-8")


def wait_for(met: Callable[[], Any], seconds: float = 90) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := met()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return found


@contextmanager
def serving(runs_dir: Path, *options: str, **env: str) -> Iterator[tuple[ServerProcess, Asking]]:
    with ServerProcess(runs_dir, "--workers", "2", *options, env={**PLUGINS, **env}) as server:
        asking = Asking(server)
        yield server, asking
        asking.http.close()


def test_a_locked_database_delays_writers_only(tmp_path: Path) -> None:
    with serving(tmp_path / "runs") as (server, asking):
        first = asking.make(slow(60))
        asking.until(first, "running")
        holder = sqlite3.connect(server.runs_dir / ".server" / "service.sqlite", isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        refused = asking.http.post("/v1/runs", json=RUN)
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) >= 1
        assert refused.json()["type"] == "urn:mleredux:problem:unavailable"
        assert len(asking.http.get("/v1/runs").json()["items"]) == 1, "readers do not wait"
        assert not asking.check("database")
        holder.execute("ROLLBACK")
        holder.close()

        second = asking.make(RUN)
        assert asking.until(second, "done", "failed") == "done"
        assert asking.until(first, "done", "failed") == "done"
        assert asking.states(first).count("running") == 1
        assert asking.agent_log(first).count("begun") == 1
        assert asking.check("database")
        assert {run["id"] for run in asking.http.get("/v1/runs").json()["items"]} == {first, second}
        assert set(os.listdir(server.runs_dir)) >= {first, second}
        assert not [name for name in os.listdir(server.runs_dir) if "digits" in name and name not in (first, second)]


MADE: dict[str, dict[str, Any]] = {
    "runs": {"json": RUN},
    "builds": {"json": {"agent": "dummy", "sandbox": "process"}},
    "submissions": {"data": {"task": "digits"}, "files": {"file": ("s.csv", b"id,label\n", "text/csv")}},
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize(
    ("broken", "committed"),
    [(1, False), (1, True), (2, False), (2, True)],
    ids=["before-the-rows", "after-the-rows", "not-acknowledged", "acknowledged"],
)
def test_a_database_lost_during_a_creation_leaves_a_complete_resource_or_none(
    making: tuple[LocalServer, httpx.Client], monkeypatch: pytest.MonkeyPatch, kind: str, broken: int, committed: bool
) -> None:
    (local, http), asked = making, 0
    service, writing = local.service, local.service.database.writing
    lost = OperationalError("COMMIT", {}, Exception("gone"))

    @contextmanager
    def one_fails() -> Iterator[Any]:
        nonlocal asked
        asked += 1
        if asked == broken and not committed:  # the first creates the rows, the second acknowledges them
            raise lost
        with writing() as session:
            yield session
        if asked == broken:
            raise lost

    def there() -> set[str]:
        return {item["id"] for item in http.get(f"/v1/{kind}").json()["items"]}

    before, headers = there(), {"Idempotency-Key": f"{kind} {broken} {committed}"}
    with monkeypatch.context() as patched:
        patched.setattr(service.database, "writing", one_fails)
        refused = http.post(f"/v1/{kind}", headers=headers, **MADE[kind])
    assert (refused.status_code, asked) == (503, broken)
    remove_partial(service)
    assert not service.left
    acknowledged = committed and broken == 2
    made = there() - before
    assert len(made) == acknowledged
    folder = service.job_dir({"runs": "run", "builds": "build", "submissions": "grade"}[kind], "any").parent
    assert {path.name for path in folder.glob("*[-_]*") if path.is_dir()} == before | made
    again = http.post(f"/v1/{kind}", headers=headers, **MADE[kind])
    assert again.status_code == (201 if kind == "runs" else 202), again.text
    assert ("Idempotency-Replayed" in again.headers) == acknowledged
    assert there() - before == {again.json()["id"]}


@pytest.fixture(scope="module")
def making(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalServer, httpx.Client]]:
    """A server that runs no jobs, and its admin's client."""
    place = Path(tmp_path_factory.mktemp("making")) / "runs"
    with (
        structlog.testing.capture_logs(),
        LocalServer(place).running() as local,
        httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.token}"}, timeout=30) as http,
    ):
        wait_for(lambda: http.get("/v1/tokens").json()["items"][0]["last_used_at"])  # what is written in the background
        yield local, http


@pytest.fixture
def small_disk(root: None, tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder], capture_output=True, text=True
    )
    if mounted.returncode:
        skip_or_fail("root", f"a small file system can't be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def kept_in(folder: Path) -> set[str]:
    """Without the journal of an index, which is temporary."""
    return {name for name in os.listdir(folder) if not name.startswith("index.sqlite-")}


def fill(disk: Path) -> Path:
    """A file that uses all free space."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
    return filler


def test_a_full_disk_refuses_new_runs_completely_and_running_ones_survive_or_report_why(
    small_disk: Path, tmp_path: Path
) -> None:
    options = ("--min-free-mb", "4", "--data-dir", str(tmp_path / "data"), "--log-format", "json")
    with serving(small_disk / "runs", *options) as (server, asking):
        before = asking.make(RUN)
        assert asking.until(before, "done", "failed") == "done"
        going_on = asking.make(slow(50, limits={"disk_mb": 5}))
        waiting = asking.make(slow(1, limits={"cpus": 2, "disk_mb": 5}))
        more = [asking.make(slow(1, limits={"cpus": 2, "disk_mb": 5})) for _ in range(5)]
        asking.until(going_on, "running")

        filler = fill(small_disk)
        names = kept_in(server.runs_dir)
        for _ in range(3):
            refused = asking.http.post("/v1/runs", json=RUN)
            assert refused.status_code == 507, refused.text
            assert refused.json()["type"] == "urn:mleredux:problem:no-space"
        time.sleep(6)
        assert kept_in(server.runs_dir) == names, "nothing is partially created"
        assert len(asking.http.get("/v1/runs").json()["items"]) == 8
        assert not asking.check("disk")
        assert asking.http.get("/healthz").status_code == 200
        assert asking.http.get("/metrics").status_code == 200
        os.truncate(filler, filler.stat().st_size - (2 << 20))  # less than the server leaves free
        for run_id in (waiting, *more):
            wait_for(lambda: "MB is free" in (asking.run(run_id)["waiting_for"] or ""))  # noqa: B023 - called immediately
        filler.unlink()

        wait_for(lambda: asking.http.get("/readyz").status_code == 200)
        ended = {run_id: asking.until(run_id, "done", "failed") for run_id in (going_on, waiting, *more)}
        for run_id, status in ended.items():
            shown = asking.run(run_id)
            assert status == "done", (shown["cause"], shown["message"])
            log = server.runs_dir / run_id / "logs" / "agent.log"
            assert log.exists() or status == "failed", "a run without room has no log"
            assert not log.exists() or log.read_text(encoding="utf-8").count("begun") <= 1
        after = asking.make(RUN)
        assert asking.until(after, "done", "failed") == "done"
        died = [line for line in server.log if '"a worker ended"' in line]
        assert len(died) <= 4, "workers are not restarted in a loop"
        assert server.process.poll() is None


REASONS = {
    "digits": "No space left on device",
    "wine": "The engine does not respond",
    "diabetes": "The object store does not respond",
    "breast-cancer": "can't be resolved",
}


def test_runs_wait_for_what_passes_by_itself_in_every_stage(tmp_path: Path) -> None:
    """One run for each condition fails in each of its stages, and continues there."""
    faults = tmp_path / "faults"
    faults.mkdir()
    options = ("--data-dir", str(tmp_path / "data"))
    env = {"MLEREDUX_PLUGINS": str(Path(__file__).parent / "passing"), "FAULTS": str(faults)}
    with serving(tmp_path / "runs", *options, **env) as (_server, asking):
        (faults / "preparing").touch()
        runs = {task: asking.make({**RUN, "task": task, "agent": f"for-{task}"}) for task in REASONS}

        def waits(task: str, stage: str) -> bool:
            shown = asking.run(runs[task])
            assert shown["status"] not in ("failed", "done"), (task, stage, shown["message"])
            waiting = shown["status"] == "queued" and REASONS[task] in (shown["waiting_for"] or "")
            assert not waiting or (shown["cause"], shown["ended_at"]) == (None, None)
            return waiting and stage in asking.states(runs[task])

        for stage, following in (("preparing", "running"), ("running", "grading"), ("grading", None)):
            for task in runs:
                wait_for(lambda: waits(task, stage))  # noqa: B023 - called immediately
            if following is not None:
                (faults / following).touch()
            (faults / stage).unlink()
        for run_id in runs.values():
            assert asking.until(run_id, "done", "failed") == "done"


class Clock:
    """The clock of processes started with its variables; only the wall-clock time changes."""

    def __init__(self, folder: Path) -> None:
        libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
        if not libraries:
            skip_or_fail("faketime", "libfaketime is not installed (see .ci/faketime)")
        self._file = folder / "clock"
        patched = folder / "python"
        patched.mkdir()
        # libfaketime 0.9.10 miscounts sleeps until a moment of the monotonic clock, which is how Python sleeps.
        sleep = "import select, time\ntime.sleep = lambda seconds: select.select([], [], [], seconds) and None\n"
        (patched / "sitecustomize.py").write_text(sleep, encoding="utf-8")
        self.set("+0")
        self.env = {
            "LD_PRELOAD": str(libraries[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
            "PYTHONPATH": os.pathsep.join([str(patched), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }

    def set(self, offset: str) -> None:
        """Make the clock jump: `+1d`, `-1d`, `+0`."""
        self._file.with_suffix(".new").write_text(offset, encoding="utf-8")
        self._file.with_suffix(".new").replace(self._file)


@pytest.mark.faketime
def test_a_changed_clock_ends_no_run_and_starts_none_twice(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    with serving(tmp_path / "runs", **clock.env) as (_server, asking):
        hour = asking.http.post("/v1/tokens", json={"name": "an hour", "scopes": ["read"], "expires_in": 3600})
        assert hour.status_code == 201, hour.text

        def allowed() -> bool:
            headers = {"Authorization": f"Bearer {hour.json()['token']}"}
            return asking.http.get("/v1/runs", headers=headers).status_code == 200

        assert allowed()
        before = asking.http.get("/v1/me").headers["date"]
        long = asking.make(slow(80, limits={"time_limit": 60}))
        asking.until(long, "running")
        waits = [asking.make(slow(5, limits={"cpus": 2}))]
        seen: list[tuple[str, str]] = []
        follower = threading.Thread(target=follow, args=(asking.http, long, seen), daemon=True)
        follower.start()

        clock.set("+1d")
        assert asking.http.get("/v1/me").headers["date"] != before
        wait_for(lambda: not allowed())
        in_future = asking.make(slow(1))
        time.sleep(2)
        clock.set("-1d")
        wait_for(allowed)
        in_past = asking.make(slow(1))
        time.sleep(2)
        clock.set("+0")

        for run_id in (long, *waits, in_future, in_past):
            assert asking.until(run_id, "done", "failed", "timed_out", "cancelled") == "done", asking.run(run_id)
            assert asking.states(run_id).count("running") == 1
            assert asking.agent_log(run_id).count("begun") == 1
        follower.join(60)
        assert not follower.is_alive()
        assert seen[-1] == ("end", "")
        numbers = [int(number) for _, number in seen[:-1]]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert asking.http.get("/readyz").status_code == 200


def follow(http: httpx.Client, run_id: str, seen: list[tuple[str, str]]) -> None:
    """Type and id of each event of a stream, until it ends."""
    path, accept = f"/v1/runs/{run_id}/events", {"Accept": "text/event-stream"}
    with http.stream("GET", path, headers=accept) as stream:
        kind = number = ""
        for line in stream.iter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("id: "):
                number = line.removeprefix("id: ")
            elif not line and kind:
                seen.append((kind, "" if kind == "end" else number))
                kind = number = ""
