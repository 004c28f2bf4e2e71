"""The Docker engine restarted under a server whose runs are in containers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mleredux_support.server import ServerProcess
from mleredux_support.server_docker import PrivateEngine
from mleredux_testing.pytest_plugin import skip_or_fail

pytestmark = pytest.mark.docker
PLUGINS = {"MLEREDUX_PLUGINS": str(Path(__file__).parent / "slow_agent")}


@pytest.fixture(scope="module")
def engine(docker_base_image: str) -> Iterator[PrivateEngine]:
    if os.geteuid() != 0:
        skip_or_fail("root", "only root may start a Docker engine")
    with PrivateEngine(docker_base_image) as started:
        yield started


@pytest.fixture(scope="module")
def server(engine: PrivateEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = Path(tmp_path_factory.mktemp("server"))
    with ServerProcess(folder / "runs", "--workers", "2", env={**PLUGINS, "DOCKER_HOST": engine.host}) as started:
        yield started


def wait_for(met: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := met()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)
    return found


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["told-to-stop", "killed"])
def test_a_run_in_a_container_survives_an_engine_restart_or_does_not_fail_because_of_its_agent(
    engine: PrivateEngine, server: ServerProcess, http: httpx.Client, how: signal.Signals
) -> None:
    def make(tenths: int) -> str:
        asked = {"task": "digits", "agent": "slow", "sandbox": "docker", "seed": tenths}
        made = http.post("/v1/runs", json=asked)
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def shown(run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = http.get(f"/v1/runs/{run_id}").json()
        return found

    run_id = make(80)
    log = server.runs_dir / run_id / "logs" / "agent.log"
    wait_for(lambda: log.exists() and "begun" in log.read_text(encoding="utf-8"))
    engine.stop(how)
    waiting = make(1)
    time.sleep(2)
    assert http.get("/readyz").status_code == 200, "the server itself is well"
    engine.start()

    final = ("done", "failed", "timed_out", "cancelled")
    ended = [wait_for(lambda one=one: (run := shown(one))["status"] in final and run) for one in (run_id, waiting)]
    for run in ended:
        assert run["status"] == "done" or run["cause"] == "environment_broke", run
        assert run["status"] == "done" or run["message"]
    after = make(1)
    assert wait_for(lambda: (run := shown(after))["status"] in final and run)["status"] == "done"
    items = http.get(f"/v1/runs/{run_id}/events", params={"limit": 500}).json()["items"]
    assert [item["seq"] for item in items] == list(range(items[0]["seq"], items[0]["seq"] + len(items)))
    assert wait_for(lambda: not engine.docker("ps", "-aq").split()), "no container is left"
