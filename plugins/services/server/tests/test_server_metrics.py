"""`/metrics`: the Prometheus endpoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient
from mleredux._core.plugins import Catalogue
from mleredux_server.accounts.accounts import make_user
from mleredux_server.app import create_app, make_service
from mleredux_server.database.tables import Job, Project, RunRow, User, now
from mleredux_server.operations.metrics import Metrics, Stored
from mleredux_server.service import Service
from mleredux_server.settings import Settings
from mleredux_support.server import ServerProcess
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select

ALLOWED_LABELS = {
    "route", "method", "status", "le", "kind", "outcome", "version", "python", "database", "state", "reason",
}  # fmt: skip


def read(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(text: str, name: str, **labels: str) -> float:
    return read(text)[name, tuple(sorted(labels.items()))]


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return make_service(Settings(runs_dir=tmp_path / "runs"), Catalogue())


def add_run(service: Service, run_id: str, status: str, state: str) -> None:
    with service.database.writing() as session:
        user = session.scalars(select(User)).first() or make_user(session, "ada", admin=True)
        common = {"id": run_id, "project_id": session.scalars(select(Project.id)).one(), "user_id": user.id}
        told = {"task": "t", "agent": "a", "sandbox": "docker", "seed": 0, "network": "none", "status": status}
        fields = {"limits": {}, "options": {}, "labels": {}, "request": {}}
        session.add(Job(**common, kind="run", state=state, queued_at=now() - timedelta(seconds=90)))
        session.add(RunRow(**common, **told, **fields))


def test_requests_are_counted_by_the_template_of_their_route(server: ServerProcess, http: httpx.Client) -> None:
    for path in ("/v1/runs/a", "/v1/runs/b", "/nowhere/1", "/nowhere/2"):
        http.get(path)
    http.request("BREW", "/v1/runs")
    answer = httpx.get(f"{server.url}/metrics", timeout=60)

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    count = "mleredux_http_request_duration_seconds_count"
    assert of(answer.text, count, route="/v1/runs/{run_id}", method="GET", status="4xx") == 2
    assert of(answer.text, count, route="none", method="GET", status="4xx") == 2
    assert of(answer.text, count, route="/v1/runs", method="other", status="4xx") == 1
    assert of(answer.text, "mleredux_http_requests_in_flight") == 1  # this one
    assert of(answer.text, "process_resident_memory_bytes") > 1e6
    assert of(answer.text, "mleredux_machine_cpus") > 0
    assert of(answer.text, "mleredux_database_up") == 1


def test_no_label_has_a_value_that_users_choose(server: ServerProcess, http: httpx.Client) -> None:
    http.get("/v1/runs/some-secret-run-name")
    text = httpx.get(f"{server.url}/metrics", timeout=60).text
    assert {label for _, labels in read(text) for label, _ in labels} <= ALLOWED_LABELS
    assert "some-secret" not in text
    assert "usr_" not in text
    assert "admin" not in text


def test_runs_and_the_queue_are_counted_from_the_database(service: Service) -> None:
    for number, (status, state) in enumerate([("queued", "queued"), ("queued", "queued"), ("done", "ended")]):
        add_run(service, f"r{number}", status, state)
    with TestClient(create_app(service)) as client:
        text = client.get("/metrics").text
    assert of(text, "mleredux_runs", status="queued") == 2
    assert of(text, "mleredux_runs", status="done") == 1
    assert of(text, "mleredux_runs", status="failed") == 0
    assert of(text, "mleredux_jobs_waiting", kind="run") == 2
    assert of(text, "mleredux_jobs_running", kind="run") == 0
    assert 90 <= of(text, "mleredux_queue_oldest_wait_seconds") < 200


def test_the_database_is_queried_once_in_some_seconds_for_any_number_of_clients(service: Service) -> None:
    asked: list[float] = []
    stored = Stored(service, fresh=60)
    plain = service.database.reading
    service.database.reading = lambda: (asked.append(time.monotonic()), plain())[1]  # type: ignore[method-assign]
    threads = [threading.Thread(target=lambda: list(stored.collect())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == 1
    stored._until -= 60
    list(stored.collect())
    assert len(asked) == 2


def test_without_a_database_the_last_numbers_and_its_failure_are_reported(service: Service) -> None:
    add_run(service, "r0", "done", "ended")
    stored = Stored(service, fresh=0.0)
    before = next(iter(stored.collect()))
    service.database.close()
    with service.database.engine.connect() as connection:
        connection.exec_driver_sql("ALTER TABLE runs RENAME TO gone")
        connection.commit()
    after = {metric.name: {str(s.labels): s.value for s in metric.samples} for metric in stored.collect()}
    assert before.samples[0].value == 1
    assert after["mleredux_database_up"] == {"{}": 0}
    assert after["mleredux_runs"]["{'status': 'done'}"] == 1


def test_two_services_in_one_process_have_separate_numbers(service: Service) -> None:
    one, two = Metrics(service), Metrics(service)
    one.followers.inc()
    assert two.registry.get_sample_value("mleredux_event_streams") == 0


def test_the_schedulers_work_is_counted(server: ServerProcess, http: httpx.Client) -> None:
    made = http.post("/v1/runs", json={"task": "digits", "agent": "dummy", "sandbox": "process"})
    assert made.status_code == 201, made.text
    wait_for(lambda: http.get(made.headers["Location"]).json()["status"] == "done")
    wait_for(lambda: ("mleredux_jobs_ended_total", (("kind", "run"), ("outcome", "done"))) in read(metrics_of(server)))
    text = metrics_of(server)
    assert of(text, "mleredux_jobs_started_total", kind="run") == 1
    assert of(text, "mleredux_jobs_ended_total", kind="run", outcome="done") == 1
    assert of(text, "mleredux_jobs_retried_total", kind="run") == 0
    assert of(text, "mleredux_workers_started_total") >= 1
    assert of(text, "mleredux_workers_died_total") == 0
    assert of(text, "mleredux_dispatcher_last_round_seconds") < 10
    ready = httpx.get(f"{server.url}/readyz", timeout=60).json()
    assert {check["name"]: check["ok"] for check in ready["checks"]} == {
        "database": True, "disk": True, "dispatcher": True, "workers": True,
    }  # fmt: skip


def metrics_of(server: ServerProcess) -> str:
    return httpx.get(f"{server.url}/metrics", timeout=60).text


def wait_for(met: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
