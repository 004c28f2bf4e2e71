"""Cancel, retry and delete runs; quotas that make runs wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from mleredux._core.sandboxes.processes import birth
from mleredux._core.store import Run, RunStore
from mleredux_server.accounts.accounts import make_token, make_user
from mleredux_server.database import Database
from mleredux_server.database.tables import Audit, Job, Project
from mleredux_server.schemas.accounts import Quota
from mleredux_support.server import ServerProcess
from sqlalchemy import select, update

PLUGIN = Path(__file__).parent / "recovery" / "toy_counting.py"
FINAL = {"done", "failed", "timed_out", "cancelled"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("actions")
    (home / "counts").mkdir()
    env = {
        "MLEREDUX_PLUGINS": f"mleredux_testing.toys,{PLUGIN}",
        "COUNTS": str(home / "counts"),
        "MLEREDUX_CPUS": "2",
        "MLEREDUX_MEMORY_MB": "4000",
    }
    with ServerProcess(home / "runs", "--data-dir", str(home / "data"), "--workers", "3", env=env) as started:
        yield started


@pytest.fixture(scope="module")
def database(server: ServerProcess) -> Iterator[Database]:
    opened = Database(f"sqlite:///{server.runs_dir.resolve() / '.server' / 'service.sqlite'}")
    yield opened
    opened.close()


Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def new(http: httpx.Client) -> Ask:
    def make(tenths: int, **more: Any) -> dict[str, Any]:
        answer = http.post("/v1/runs", json={"task": "toy", "agent": "counting", "seed": tenths, **more})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    return make


def reaches(http: httpx.Client, run_id: str, *statuses: str) -> dict[str, Any]:
    """Return the run, once it has one of these statuses."""
    until = time.monotonic() + 120
    while (found := http.get(f"/v1/runs/{run_id}").json())["status"] not in statuses:
        assert time.monotonic() < until and found["status"] not in FINAL - set(statuses), found
        time.sleep(0.05)
    return dict(found)


def waits_for(http: httpx.Client, run_id: str, reason: str) -> None:
    """Return once the run has this reason: it is written in the dispatcher's first round after the run was created."""
    until = time.monotonic() + 120
    while (found := http.get(f"/v1/runs/{run_id}").json())["waiting_for"] != reason:
        assert time.monotonic() < until, found
        time.sleep(0.05)


def problem(answer: httpx.Response, status: int, slug: str) -> str:
    assert answer.status_code == status, answer.text
    assert answer.json()["type"] == f"urn:mleredux:problem:{slug}"
    return str(answer.json()["detail"])


def test_a_run_goes_through_all_states_and_shows_its_score(http: httpx.Client, new: Ask) -> None:
    made = new(0)
    assert (made["status"], made["started_at"], made["score"]) == ("queued", None, None)
    shown = reaches(http, made["id"], "done")
    assert shown["score"] == pytest.approx(0.5, abs=0.3) and shown["valid"] and shown["waiting_for"] is None
    assert made["created_at"] < shown["started_at"] < shown["ended_at"] <= shown["updated_at"]


def test_a_waiting_run_has_a_reason_and_a_queued_run_is_cancelled_immediately(
    http: httpx.Client, new: Ask, server: ServerProcess
) -> None:
    long = new(1200, limits={"cpus": 2})  # longer than everything checked in the meantime
    reaches(http, long["id"], "running")
    waiting, behind = new(0, limits={"cpus": 2}), new(0, limits={"cpus": 2})
    waits_for(http, waiting["id"], "2 CPUs; 0 of 2 are free")
    waits_for(http, behind["id"], "its turn")
    for run in (waiting, behind):
        answer = http.post(f"/v1/runs/{run['id']}/cancel")
        assert (answer.status_code, answer.json()["status"], answer.json()["cause"]) == (202, "cancelled", "cancelled")
    again = http.post(f"/v1/runs/{waiting['id']}/cancel")
    assert (again.status_code, again.json()["status"]) == (200, "cancelled"), "the second time changes nothing"
    events = Run(server.runs_dir / waiting["id"]).events()
    assert [event.data["state"] for event in events] == ["queued", "cancelled"]

    problem(http.delete(f"/v1/runs/{long['id']}"), 409, "conflict")
    problem(http.post(f"/v1/runs/{long['id']}/retry"), 409, "conflict")
    assert http.post(f"/v1/runs/{long['id']}/cancel").status_code == 202
    ended = reaches(http, long["id"], "cancelled")
    assert ended["message"] == "The run was cancelled." and ended["ended_at"]


def test_a_cancelled_run_is_resumed_by_a_retry(http: httpx.Client, new: Ask, server: ServerProcess) -> None:
    run = new(9999)
    http.post(f"/v1/runs/{run['id']}/cancel")
    reaches(http, run["id"], "cancelled")
    before = RunStore(server.runs_dir).get(run["id"]).events()
    key = {"Idempotency-Key": "go on"}
    answer = http.post(f"/v1/runs/{run['id']}/retry", headers=key)
    assert (answer.status_code, answer.json()["id"], answer.json()["status"]) == (202, run["id"], "queued"), answer.text
    again = http.post(f"/v1/runs/{run['id']}/retry", headers=key)
    assert (again.status_code, again.json()) == (202, answer.json())
    assert answer.json()["ended_at"] is None
    (server.runs_dir.parent / "counts" / "go on").touch()
    shown = reaches(http, run["id"], "done")
    events = RunStore(server.runs_dir).get(run["id"]).events()
    assert shown["cause"] is None and events[: len(before)] == before
    assert [event.seq for event in events] == list(range(len(events)))


def test_a_retry_of_an_ended_run_creates_a_new_one(http: httpx.Client, new: Ask) -> None:
    run = new(0, labels={"of": "me"}, priority=3, limits={"time_limit": 33})
    reaches(http, run["id"], "done")
    key = {"Idempotency-Key": "once"}
    answer = http.post(f"/v1/runs/{run['id']}/retry", headers=key)
    fresh = answer.json()
    again = http.post(f"/v1/runs/{run['id']}/retry", headers=key)
    assert (again.json()["id"], again.headers["Idempotency-Replayed"]) == (fresh["id"], "true")
    assert answer.status_code == 201 and answer.headers["Location"] == f"/v1/runs/{fresh['id']}"
    assert fresh["id"] != run["id"] and fresh["retry_of"] == run["id"]
    same = ("task", "agent", "seed", "labels", "priority", "limits", "project", "sandbox")
    assert {key: fresh[key] for key in same} == {key: run[key] for key in same}
    reaches(http, fresh["id"], "done")


def test_a_deleted_run_is_removed_with_all_its_files(
    http: httpx.Client, new: Ask, server: ServerProcess, database: Database
) -> None:
    run = new(0)
    reaches(http, run["id"], "done")
    with database.reading() as session:
        assert session.get_one(Job, run["id"]).disk_mb >= 1, "its files count"
    assert http.delete(f"/v1/runs/{run['id']}").status_code == 204
    assert http.get(f"/v1/runs/{run['id']}").status_code == 404
    assert not (server.runs_dir / run["id"]).exists() and not list((server.runs_dir / ".server" / "trash").iterdir())
    problem(http.delete(f"/v1/runs/{run['id']}"), 404, "not-found")
    with database.reading() as session:
        done = session.scalars(select(Audit.action).where(Audit.target == run["id"])).all()
    assert "delete" in done


def test_users_can_not_change_others_runs(
    http: httpx.Client, new: Ask, server: ServerProcess, database: Database
) -> None:
    run = new(0)
    with database.writing() as session:
        user = make_user(session, "stranger")
        _, token = make_token(session, user, "t", ["read", "run"])
        _, reader = make_token(session, user, "r", ["read"])
    calls = (("POST", f"/v1/runs/{run['id']}/cancel"), ("POST", f"/v1/runs/{run['id']}/retry"))
    for method, path in (*calls, ("DELETE", f"/v1/runs/{run['id']}"), ("POST", "/v1/experiments/exp_x/cancel")):
        problem(http.request(method, path, headers={"Authorization": f"Bearer {token}"}), 404, "not-found")
        problem(http.request(method, path, headers={"Authorization": f"Bearer {reader}"}), 403, "forbidden")
    reaches(http, run["id"], "done")


def test_a_project_s_quota_makes_only_its_own_runs_wait(http: httpx.Client, new: Ask, database: Database) -> None:
    with database.writing() as session:
        owner = make_user(session, "narrow", quota=Quota(concurrent_runs=1, sandboxes=None))
        _, token = make_token(session, owner, "t", ["read", "run"])
        project = session.scalars(select(Project).where(Project.name == "narrow")).one()
        assert project.quota["concurrent_runs"] == 1
    headers = {"Authorization": f"Bearer {token}"}
    asked = {"task": "toy", "agent": "counting", "seed": 1200}
    first, second = (http.post("/v1/runs", json=asked, headers=headers).json()["id"] for _ in range(2))
    reaches(http, first, "running")
    other = reaches(http, new(0)["id"], "done")
    assert other["project"] != project.id
    waits_for(http, second, "the project's 1 concurrent runs")
    http.post(f"/v1/runs/{first}/cancel")
    reaches(http, second, "running", "preparing", "building")
    http.post(f"/v1/runs/{second}/cancel")
    reaches(http, second, "cancelled")


def test_a_job_recorded_as_started_but_never_sent_is_started(
    http: httpx.Client, new: Ask, server: ServerProcess, database: Database
) -> None:
    """As when the database's connection breaks during the write: it is unknown whether it was committed."""
    run_id = new(1)["id"]
    reaches(http, run_id, "done")
    idle = next(
        child
        for child in psutil.Process(server.process.pid).children()
        if "scheduler.worker" in " ".join(child.cmdline())
    )

    def state() -> str | None:
        with database.reading() as session:
            return session.scalar(select(Job.state).where(Job.id == run_id))

    assert state() == "ended"
    with database.writing() as session:
        noted = {"state": "started", "worker_pid": idle.pid, "worker_birth": birth(idle.pid)}
        session.execute(update(Job).where(Job.id == run_id).values(**noted))
    deadline = time.monotonic() + 120
    while state() != "ended" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert state() == "ended"


def test_all_runs_of_an_experiment_are_cancelled(http: httpx.Client) -> None:
    asked = {"tasks": ["toy"], "agents": ["counting"], "seeds": [200, 201, 202, 203, 204]}
    made = http.post("/v1/experiments", json=asked).json()
    answer = http.post(f"/v1/experiments/{made['id']}/cancel")
    assert answer.status_code == 202 and len(answer.json()["runs"]) == 5
    for run in made["runs"]:
        reaches(http, run["id"], "cancelled")
    again = http.post(f"/v1/experiments/{made['id']}/cancel")
    assert (again.status_code, again.json()["counts"]) == (200, {"cancelled": 5})
