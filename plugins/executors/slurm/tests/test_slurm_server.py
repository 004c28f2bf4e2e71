"""`mleredux serve --executor slurm`: runs of a server on a real Slurm cluster, which go on while it is restarted."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from mleredux_executor_slurm.executor import EXECUTOR
from mleredux_testing.lab import PLUGINS, Lab, until
from mleredux_testing.server import ServerProcess
from mleredux_testing.slurm import SlurmCluster

pytestmark = pytest.mark.slurm


def test_a_server_gives_runs_to_slurm_and_finds_them_again(tmp_path: Path, slurm: SlurmCluster) -> None:
    lab = Lab(tmp_path, EXECUTOR)
    env = {**slurm.env, **Lab.environment(tmp_path), "MLEREDUX_PLUGINS": ",".join(PLUGINS)}
    options = ("--executor", "slurm", "--data-dir", str(tmp_path / "data"))
    with ServerProcess(lab.store.path, *options, env=env) as server:

        def ask(method: str, path: str, code: int, **body: object) -> httpx.Response:
            headers = {"Authorization": f"Bearer {server.token}"}
            response = httpx.request(method, f"{server.url}{path}", headers=headers, json=body.get("json"), timeout=60)
            assert response.status_code == code, response.text
            return response

        asked = {"task": "toy", "agent": "waiting", "sandbox": "process"}
        names = [ask("POST", "/v1/runs", 201, json={**asked, "seed": seed}).json()["id"] for seed in (0, 1, 1, 1)]
        quick, waits, cancelled, _ = runs = [lab.store.get(name) for name in names]
        too_large = {**asked, "limits": {"cpus": 64}}
        assert "64 CPUs of 2" in ask("POST", "/v1/runs", 422, json=too_large).text
        until(lambda: all(lab.starts(run) for run in runs))
        job = lab.job(waits)
        server.kill()
        server.start()
        ask("POST", f"/v1/runs/{cancelled.id}/cancel", 202)
        until(lambda: ask("GET", f"/v1/runs/{cancelled.id}", 200).json()["status"] == "cancelled")
        lab.release()
        for run in runs:
            until(lambda: ask("GET", f"/v1/runs/{run.id}", 200).json()["status"] in ("done", "cancelled"))  # noqa: B023
        assert lab.job(waits) == job and lab.starts(waits) == 1
        count = lab.count(run for run in runs if run is not cancelled)
        assert (count.done, count.lost, count.twice) == (3, (), ())
        assert ask("GET", f"/v1/runs/{quick.id}", 200).json()["report"]["score"] is not None
