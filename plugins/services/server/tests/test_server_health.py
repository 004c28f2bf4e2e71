"""`/healthz` and `/readyz`."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from mleredux._core.plugins import Catalogue
from mleredux_server.app import create_app, make_service
from mleredux_server.database import engine
from mleredux_server.operations.health import Health
from mleredux_server.service import Service
from mleredux_server.settings import Settings


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.2)
    return make_service(Settings(runs_dir=tmp_path / "runs"), Catalogue())


def checks(service: Service) -> dict[str, tuple[bool, str]]:
    return {check.name: (check.ok, check.message) for check in Health(service).check_all()}


def test_it_reports_health_without_a_token(service: Service) -> None:
    with TestClient(create_app(service)) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    assert all(check["ok"] for check in answer.json()["checks"])
    assert {"database", "disk"} <= {check["name"] for check in answer.json()["checks"]}


def test_a_database_locked_by_another_process_is_reported(service: Service) -> None:
    holder = sqlite3.connect(service.settings.state_dir / "service.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with TestClient(create_app(service)) as client:
            answer = client.get("/readyz")
            assert client.get("/healthz").status_code == 200
    finally:
        holder.close()
    assert answer.status_code == 503
    found = {check["name"]: check for check in answer.json()["checks"]}
    assert found["database"] == {"name": "database", "ok": False, "message": "The database can't be written now."}
    assert found["disk"]["ok"]


def test_a_missing_runs_directory_is_reported(service: Service) -> None:
    service.settings.state_dir.rename(service.settings.runs_dir.parent / "moved")
    ok, message = checks(service)["disk"]
    assert not ok
    assert "is not writable" in message
    assert str(service.settings.runs_dir) not in message


def test_too_little_free_space_is_reported(tmp_path: Path) -> None:
    service = make_service(Settings(runs_dir=tmp_path / "runs", min_free_mb=2**40), Catalogue())
    ok, message = checks(service)["disk"]
    assert not ok
    assert "is free" in message


def test_concurrent_requests_share_one_check(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    def check_all(self: Health) -> list[object]:
        looks.append(time.monotonic())
        time.sleep(0.1)
        return []

    monkeypatch.setattr(Health, "check_all", check_all)
    monkeypatch.setattr(
        "mleredux_server.operations.health._FRESH_SECONDS", 60.0
    )  # however long it takes until all have asked
    with TestClient(create_app(service)) as client:
        threads = [threading.Thread(target=client.get, args=("/readyz",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(looks) == 1
