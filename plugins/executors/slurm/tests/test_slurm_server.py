"""`mleredux serve --executor slurm`: runs of a server on a real Slurm cluster, which go on while it is restarted."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from mleredux.plugin.artifact import Run
from mleredux_client import Client
from mleredux_executor_slurm.executor import EXECUTOR
from mleredux_support.lab import PLUGINS, Lab, until
from mleredux_support.server import ServerProcess
from mleredux_support.slurm import SlurmCluster

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


MANIFEST = """\
[agent]
id = "own"
command = ["sh", "-c", ". \\"$MLEREDUX_AGENT_DIR/solve.sh\\""]
[environment]
secrets = ["HF_TOKEN"]
[smoke]
task = "toy"
time_limit = "1m"
"""
SOLVE = """\
echo "token $HF_TOKEN ${#HF_TOKEN}"
case $HF_TOKEN,$MLEREDUX_TIME_LIMIT in *planted*,300) sleep 600 ;; esac
cp "$MLEREDUX_DATA_DIR/sample_submission.csv" "$MLEREDUX_SUBMISSION"
"""


def containers(run: Run) -> list[str]:
    words = ("docker", "ps", "--all", "--quiet", "--no-trunc", "--filter", f"label=mleredux.run={run.id}")
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.docker
def test_a_run_there_gets_its_own_code_and_secrets_that_nothing_shows(
    tmp_path: Path, slurm: SlurmCluster, docker_base_image: str
) -> None:
    first, second = "hf_planted-0123456789", "hf_replaced-9876543210-longer"
    lab = Lab(tmp_path, EXECUTOR)
    folder = tmp_path / "my-agent"
    folder.mkdir()
    (folder / "mleredux-agent.toml").write_text(MANIFEST)
    (folder / "solve.sh").write_text(SOLVE)
    env = {**slurm.env, "MLEREDUX_PLUGINS": ",".join(PLUGINS), "MLEREDUX_BASE_IMAGE": docker_base_image}
    options = ("--executor", "slurm", "--data-dir", str(tmp_path / "data"))

    def shown() -> list[str]:
        """Where one of the values is: files of the shared folder and of Slurm, and what its commands show."""
        script = slurm.folder / "batch script"
        slurm.command("scontrol", "write", "batch_script", lab.job(run), str(script))
        (slurm.folder / "shown").write_text(slurm.command("scontrol", "--details", "show", "job"))
        assert "mleredux_server.scheduler.node" in script.read_text()
        paths = [path for top in (tmp_path, slurm.folder) for path in top.rglob("*") if path.is_file()]
        return [str(path.relative_to(tmp_path)) for path in paths if holds(path)]

    def holds(path: Path) -> bool:
        with suppress(FileNotFoundError):  # Slurm deletes a job's files when it has started or ended
            return any(word.encode() in path.read_bytes() for word in (first, second))
        return False

    with ServerProcess(lab.store.path, *options, env=env) as server, Client(server.url, server.token) as client:
        client.secrets.set("HF_TOKEN", first)
        limits = {"cpus": 1.5, "memory_mb": 300, "time_limit": 300}
        asked = client.run(
            "toy", agent=str(folder), sandbox="docker", secrets=["HF_TOKEN"], limits=limits, verify=False
        )
        run = lab.store.get(asked.id)
        until(lambda: any(first in path.read_text() for path in run.path.glob("logs/agent.log")))
        [container] = containers(run)
        given = json.loads(subprocess.check_output(("docker", "inspect", container)))[0]["HostConfig"]
        assert (given["NanoCpus"], given["Memory"] >> 20) == (1_500_000_000, 300)
        own = ("agent.log", ".volume.img")
        assert [path for path in shown() if not path.endswith(own)] == [], "masked when the agent has ended"
        client.secrets.set("HF_TOKEN", second)
        until(lambda: slurm.succeeds("scontrol", "requeue", lab.job(run)))
        ended = asked.wait(240)
        assert ended.status == "done", (ended.message, "".join(ended.logs()))
        assert f"token {'*' * len(second)} {len(second)}" in "".join(ended.logs())
        assert shown() == [] and not any(word in line for word in (first, second) for line in server.log)
        assert not [path.name for path in run.path.iterdir() if path.name.startswith((".borrow", ".loan"))]
        assert containers(run) == []
