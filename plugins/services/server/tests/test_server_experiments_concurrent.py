"""Changes of an experiment at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event
from typing import Any

import httpx
import pytest
from mleredux.plugin.artifact import Run
from mleredux_server.scheduler import actions
from mleredux_support.server_local import LocalServer


def crowd(client: httpx.Client, url: str, bodies: list[dict[str, Any]]) -> list[int]:
    """The statuses of requests that are sent at the same time."""
    together = Barrier(len(bodies))

    def send(body: dict[str, Any]) -> int:
        together.wait()
        return client.post(url, json=body).status_code

    with ThreadPoolExecutor(len(bodies)) as pool:
        return sorted(pool.map(send, bodies))


def check_concurrent_changes(client: httpx.Client) -> None:
    """Extensions at the same time make each cell once, and leave none out."""
    arms = {name: {"agent": "dummy", "sandbox": "docker"} for name in ("v1", "v2")}
    plan = {"experiment": {"name": "crowd", "tasks": ["wine"]}, "arms": arms}
    made = client.post("/v1/experiments", json={"plan": plan}).json()
    url = f"/v1/experiments/{made['id']}"
    assert crowd(client, f"{url}/extend", [{"seeds": [1]}] * 4) == [201, 409, 409, 409]
    assert crowd(client, f"{url}/extend", [{"seeds": [2]}, {"tasks": ["digits"]}, {"seeds": [2, 3]}]) in (
        [201, 201, 201],
        [201, 201, 409],  # nothing was left to add
    )
    shown = client.get(url).json()
    cells = [(run["arm"], run["task"], run["seed"]) for run in shown["runs"]]
    assert sorted(cells) == sorted(
        (arm, task, seed) for arm in arms for task in ("wine", "digits") for seed in range(4)
    )
    client.post(f"{url}/cancel")
    assert set(crowd(client, f"{url}/retry", [{}] * 4)) == {202}
    again = client.get(url).json()["runs"]
    assert sorted((run["arm"], run["task"], run["seed"]) for run in again if run["status"] == "queued") == sorted(cells)


def check_server(folder: Path, **settings: Any) -> None:
    with LocalServer(folder / "runs", **settings).running() as there:
        headers = {"Authorization": f"Bearer {there.user('ann')}"}
        with httpx.Client(base_url=there.url, headers=headers, timeout=60) as client:
            check_concurrent_changes(client)


def test_changes_at_the_same_time_make_each_run_once(tmp_path: Path) -> None:
    check_server(tmp_path)


def test_a_retry_that_finds_the_run_held_by_another_makes_no_second_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has seen that the run has ended; before it checks that it can be resumed, the other has taken its lock."""
    met, held, made = Barrier(2), Event(), Event()
    check, facts, make = actions.check_resumable, actions.facts_of, actions.make_runs

    def check_second(*asked: Any, **how: Any) -> None:
        with suppress(BrokenBarrierError):  # where retries come one by one, the first waits in vain
            if met.wait(1):
                held.wait(9)
        check(*asked, **how)

    def facts_while_held(run: Run) -> Any:
        held.set()
        if not met.broken:
            made.wait(9)
        return facts(run)

    def make_and_tell(*asked: Any, **how: Any) -> Any:
        rows = make(*asked, **how)
        made.set()
        return rows

    with LocalServer(tmp_path / "runs").running() as there:
        headers = {"Authorization": f"Bearer {there.user('ann')}"}
        with httpx.Client(base_url=there.url, headers=headers, timeout=60) as client:
            plan = {"experiment": {"name": "two", "tasks": ["wine"]}, "arms": {"v1": {"agent": "dummy"}}}
            url = f"/v1/experiments/{client.post('/v1/experiments', json={'plan': plan}).json()['id']}"
            client.post(f"{url}/cancel")
            for name, patched in (("check_resumable", check_second), ("facts_of", facts_while_held)):
                monkeypatch.setattr(actions, name, patched)
            monkeypatch.setattr(actions, "make_runs", make_and_tell)
            assert crowd(client, f"{url}/retry", [{}] * 2) == [202, 202]
            assert len(client.get(url).json()["runs"]) == 1


def test_changes_at_the_same_time_make_each_run_once_with_postgresql(postgres_url: str, tmp_path: Path) -> None:
    with LocalServer(tmp_path / "runs", database=postgres_url).running() as there:
        headers = {"Authorization": f"Bearer {there.user('ann')}"}
        with httpx.Client(base_url=there.url, headers=headers, timeout=60) as client:
            check_concurrent_changes(client)
