"""Runs in every stage while what they need is out of reach: they wait with the reason, and none fails or is lost."""

from __future__ import annotations

import html
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux_support.ports import free_port
from mleredux_support.relay import Relay
from mleredux_support.s3 import S3Server, can_hide_folders
from mleredux_support.server import ServerProcess
from mleredux_testing.pytest_plugin import skip_or_fail

STAGES = ("preparing", "building", "running", "grading", "producing")
FINAL = {"done", "failed", "timed_out", "cancelled"}
WORKING = "an agent at work"


class Outage:
    """A server, and runs that are held in their stages until the outage begins."""

    def __init__(self, folder: Path, *options: str, **env: str) -> None:
        self.hold = folder / "hold"
        self.hold.mkdir()
        env |= {"MLEREDUX_PLUGINS": str(Path(__file__).parent / "outages"), "HOLD": str(self.hold)}
        env |= {"MLEREDUX_CPUS": "8", "MLEREDUX_MEMORY_MB": "8000"}
        home = folder / "home"
        home.mkdir()
        self.server = ServerProcess(home / "runs", *options, "--data-dir", str(home / "data"), env=env)
        self.runs: dict[str, str] = {}
        self.seen: dict[str, set[str]] = {}

    def __enter__(self) -> Outage:
        self.server.start()
        headers = {"Authorization": f"Bearer {self.server.token}"}
        self.http = httpx.Client(base_url=self.server.url, headers=headers, timeout=60)
        return self

    def __exit__(self, *exception: object) -> None:
        self.http.close()
        self.server.__exit__(*exception)

    def make(self, sandbox: str) -> None:
        """Create a run for each stage, and wait until it is there."""
        for number, stage in enumerate((*STAGES, WORKING), 1):
            seed = 10 * number + 5 * (stage == WORKING)
            if stage != WORKING:
                (self.hold / f"{seed}-{stage}").touch()
            self.make_one(stage, f"toy-{number}", sandbox, seed)
        for number in range(1, len(STAGES) + 1):
            wait_for((self.hold / f"{10 * number}-reached").exists)
        wait_for(lambda: self.log(WORKING).exists() and "begun" in self.log(WORKING).read_text())
        self.seen = {stage: set() for stage in self.runs}

    def make_one(self, name: str, task: str, sandbox: str, seed: int) -> None:
        """Create a run."""
        asked = {"task": task, "agent": "brief", "sandbox": sandbox, "seed": seed}
        made = self.http.post("/v1/runs", json=asked)
        assert made.status_code == 201, made.text
        self.runs[name], self.seen[name] = made.json()["id"], set()

    def release(self) -> None:
        """Let all runs continue."""
        for path in self.hold.iterdir():
            path.unlink()

    def log(self, stage: str) -> Path:
        """Return the agent's log of a run."""
        return self.server.runs_dir / self.runs[stage] / "logs" / "agent.log"

    def look(self) -> dict[str, dict[str, Any]]:
        """Return all runs, and note why they wait."""
        found = {stage: self.http.get(f"/v1/runs/{run}").json() for stage, run in self.runs.items()}
        for stage, run in found.items():
            assert run["status"] not in FINAL - {"done"}, (stage, run["cause"], run["message"])
            self.seen[stage].add(run["waiting_for"] or "")
        return found

    def check_shown(self, stage: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Check that the command line and the page say why a run waits."""
        monkeypatch.setenv("MLEREDUX_TOKEN", self.server.token)
        shown = CliRunner().invoke(root, ["--server", self.server.url, "runs", "show", self.runs[stage]])
        assert reason in shown.output.lower().partition("waiting for ")[2], shown.output
        with httpx.Client(base_url=self.server.url, headers={"Origin": self.server.url}) as pages:
            pages.post("/ui/sign-in", data={"token": self.server.token})
            page = pages.get(f"/ui/runs/{self.runs[stage]}").text
        leads = re.findall(r'<p class="lead">\w+: (.*?)</p>', html.unescape(page), re.DOTALL)
        assert any(reason in lead.lower() for lead in leads), leads

    def end(self, *, moved: bool = False) -> None:
        """Wait until all runs are done, and check that nothing was lost or counted twice.

        Args:
            moved: Whether agents may have been started again, on another node.
        """
        wait_for(lambda: all(run["status"] == "done" for run in self.look().values()), 240)
        for stage, run in self.runs.items():
            lines = (self.server.runs_dir / run / "events.jsonl").read_text().splitlines()
            events = [json.loads(line) for line in lines]
            assert [event["seq"] for event in events] == list(range(len(events)))
            assert sum(event["type"] == "state" and event["data"]["state"] == "done" for event in events) == 1
            assert self.log(stage).read_text().count("begun") == 1
            assert moved or not (self.server.runs_dir / run / "attempts").exists(), f"{stage}: it was started again"
        listed = self.http.get("/v1/runs").json()["items"]
        assert sorted(run["id"] for run in listed) == sorted(self.runs.values())


def wait_for(met: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := met()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)
    return found


def test_runs_survive_that_their_workers_are_killed_in_any_stage(tmp_path: Path) -> None:
    with Outage(tmp_path, "--workers", "6", "--no-verify") as outage:
        outage.make("process")
        workers = [
            process
            for process in psutil.Process(outage.server.process.pid).children()
            if "mleredux_server.scheduler.worker" in process.cmdline()
        ]
        assert len(workers) >= len(outage.runs)
        for worker in workers:
            worker.kill()
        outage.release()
        outage.end()


@pytest.mark.docker
def test_runs_wait_for_an_engine_that_is_out_of_reach(
    tmp_path: Path, docker_base_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"/tmp/mlr-relay-{os.getpid()}.sock"
    engine = re.sub("^unix://", "", os.environ.get("DOCKER_HOST", "/var/run/docker.sock"))
    relay = Relay(address, engine)
    with Outage(tmp_path, "--workers", "6", "--no-verify", DOCKER_HOST=f"unix://{address}") as outage:
        outage.make("docker")
        relay.stop()
        outage.release()
        reasons = ("can't be reached at", "the sandbox docker", "the Docker engine, which does not respond")
        waiting = (*STAGES[1:3], WORKING)  # those that need the engine now
        wait_for(lambda: outage.look() and all(any(map(str.strip, outage.seen[stage])) for stage in waiting))
        for stage in waiting:
            assert all(any(reason in said for reason in reasons) for said in outage.seen[stage] if said)
        for stage in waiting[1:]:
            outage.check_shown(stage, "docker", monkeypatch)
        relay.start()
        outage.end()
    relay.stop()
    Path(address).unlink()


@pytest.fixture
def store() -> Iterator[S3Server]:
    if os.geteuid() != 0 or not can_hide_folders():
        skip_or_fail("root", "hiding folders from a process needs root")
    made = S3Server()
    yield made
    made.stop()


@pytest.mark.parametrize("everywhere", [True, False], ids=["everywhere", "on the nodes"])
def test_runs_on_nodes_wait_for_an_object_store_that_is_out_of_reach(
    store: S3Server, everywhere: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, service = free_port(), store.environment["AWS_ENDPOINT_URL"].rpartition(":")[2]
    relay = Relay(("127.0.0.1", port), ("127.0.0.1", int(service)))
    (tmp_path / "nodes").mkdir()
    cut, reason = f"http://127.0.0.1:{port}", "does not respond" if everywhere else "may be unable to reach it"
    env = {**store.environment, "NODES_ENDPOINT": cut}
    if everywhere:
        env["AWS_ENDPOINT_URL"] = cut
    env |= {"NODES": str(tmp_path / "nodes"), "HIDDEN": str(tmp_path / "home")}
    options = ("--executor", "apart", "--store", store.url("outage"), "--no-verify")
    with Outage(tmp_path, *options, **env) as outage:
        outage.make("process")
        relay.stop()
        outage.make_one("begun meanwhile", "toy-9", "process", 0)
        outage.release()
        for _ in range(20):  # the runs end meanwhile, and upload
            outage.look()
            time.sleep(0.5)
        wait_for(
            lambda: outage.look() and all(any(reason in why for why in outage.seen[stage]) for stage in outage.runs)
        )
        outage.check_shown("running", reason, monkeypatch)
        relay.start()
        outage.end(moved=not everywhere)
        assert not any(run["waiting_for"] for run in outage.look().values())
    relay.stop()
