"""Runs on a real Ray cluster of three nodes on this machine, whatever happens to it meanwhile."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mleredux.errors import ExecutorError
from mleredux.plugin.agent import Limits
from mleredux.plugin.executor import JobSpec, JobStatus
from mleredux_executor_ray import executor as ray_executor
from mleredux_executor_ray.executor import EXECUTOR, RayExecutor
from mleredux_support.lab import PLUGINS, Lab, until
from mleredux_support.ray_cluster import RayCluster
from mleredux_support.server import ServerProcess
from mleredux_testing import check_executor
from mleredux_testing.names import ODD_NAME


@pytest.fixture
def lab(tmp_path: Path, ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    home = tmp_path / ODD_NAME
    home.mkdir()
    for name, value in Lab.environment(home).items():
        monkeypatch.setenv(name, value)
    made = Lab(home, EXECUTOR)
    yield made
    made.close()


@pytest.mark.ray
def test_it_conforms(ray_cluster: RayCluster, tmp_path: Path) -> None:
    findings = check_executor("ray", tmp_path)
    assert not [one for one in findings.all if one.message.startswith("not checked")]
    nodes = EXECUTOR.nodes()
    assert {(node.name, node.cpus, node.memory_mb, node.gpus) for node in nodes} == {
        (name, 2.0, 3488, 2) for name in ray_cluster.nodes
    }
    assert all("scratch" in node.labels for node in nodes)
    command, limits = ("/bin/sleep", "600"), Limits(memory_mb=256, cpus=2, gpus=0)
    jobs = EXECUTOR.submit([JobSpec(f"run-{number}", tmp_path, command, limits, 600) for number in range(4)])
    full = Counter({"running": 3, "waiting": 1})
    until(lambda: Counter(status.state for status in EXECUTOR.poll(jobs).values()) == full)
    for job in jobs:
        EXECUTOR.cancel(job)
    until(lambda: {status.state for status in EXECUTOR.poll(jobs).values()} == {"ended"})


@pytest.mark.ray
def test_dead_nodes_a_new_controller_a_requeue_and_a_cancellation_lose_nothing(
    lab: Lab, ray_cluster: RayCluster
) -> None:
    quick = lab.new(limits={"gpus": 1})
    waiting = [lab.new(waits=True) for _ in range(4)]
    runs = [quick, *waiting]
    thread = lab.follow(runs)
    until(lambda: all(lab.starts(run) and lab.place(run) for run in runs))
    assert (quick.output_dir / "devices").read_text().strip() in ("0", "1")
    cancelled, *rest = waiting
    ray_cluster.stop_controller()
    powerless, orphaned = ray_cluster.nodes[1:]
    hit = [run for run in rest if lab.place(run) in (powerless, orphaned)]
    ray_cluster.kill_node(powerless, lab.processes(run for run in waiting if lab.place(run) == powerless))
    ray_cluster.start_controller()
    ray_cluster.kill_raylet(orphaned)
    cancelled.ask_to_cancel()
    until(lambda: cancelled.state == "cancelled")
    ray_cluster.repair()
    until(lambda: all(lab.starts(run) >= 2 for run in hit))  # more if one was on both, the second after the first
    requeued = rest[0]
    before = lab.starts(requeued)
    ray_cluster.kill_actor(lab.job(requeued))
    until(lambda: lab.starts(requeued) > before)
    lab.release()
    thread.join(240)
    assert not thread.is_alive(), {run.id: (run.state, lab.said[run.id][-1]) for run in runs}
    count = lab.count([quick, *rest])
    assert (count.done, count.lost, count.twice) == (4, (), ())
    until(lambda: not lab.processes(runs))
    until(lambda: {lab.status(run).state for run in runs} == {"ended"})
    assert sorted(node.name for node in EXECUTOR.nodes()) == list(ray_cluster.nodes), "no dead ones"


@pytest.mark.ray
def test_a_server_gives_runs_to_ray_and_finds_them_again(tmp_path: Path, ray_cluster: RayCluster) -> None:
    lab = Lab(tmp_path, EXECUTOR)
    env = {**ray_cluster.env, **Lab.environment(tmp_path), "MLEREDUX_PLUGINS": ",".join(PLUGINS)}
    options = ("--executor", "ray", "--data-dir", str(tmp_path / "data"))
    with ServerProcess(lab.store.path, *options, env=env) as server:

        def ask(method: str, path: str, code: int, **body: object) -> httpx.Response:
            headers = {"Authorization": f"Bearer {server.token}"}
            response = httpx.request(method, f"{server.url}{path}", headers=headers, json=body.get("json"), timeout=60)
            assert response.status_code == code, response.text
            return response

        asked = {"task": "toy", "agent": "waiting", "sandbox": "process", "seed": 1}
        run, stopped = (lab.store.get(ask("POST", "/v1/runs", 201, json=asked).json()["id"]) for _ in range(2))
        assert "64 CPUs of 2" in ask("POST", "/v1/runs", 422, json={**asked, "limits": {"cpus": 64}}).text
        until(lambda: lab.starts(run) and lab.starts(stopped))
        job = lab.job(run)
        server.kill()
        for process in lab.processes([stopped]):
            if "mleredux_executor_nodes.node" in process.cmdline()[:3]:
                process.suspend()
        server.start()
        ask("POST", f"/v1/runs/{stopped.id}/cancel", 202)
        until(lambda: ask("GET", f"/v1/runs/{stopped.id}", 200).json()["status"] == "cancelled")
        lab.release()
        until(lambda: ask("GET", f"/v1/runs/{run.id}", 200).json()["status"] == "done")
        assert (lab.job(run), lab.starts(run)) == (job, 1)
        until(lambda: not lab.processes([run, stopped]))


def started_through(source: str, python: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a program start the driver, with the driver's arguments as its own."""
    (folder / "between.py").write_text(source)
    (folder / "python").write_text(f'#!/bin/sh\nexec {python} {folder}/between.py "$@"\n')
    (folder / "python").chmod(0o755)
    monkeypatch.setenv(ray_executor.PYTHON_VARIABLE, str(folder / "python"))


_FAKE_RAY = """
import sys
from types import ModuleType
def actors(actor_state_name=None):
    known = {
        "made": ("ALIVE", "a1", 1), "stuck": ("PENDING_CREATION", "a1", 1), "queued": ("PENDING_CREATION", "a1", 0),
        "again": ("RESTARTING", "ffff", 0),
    }
    told = {
        n: {"Name": n, "State": s, "Address": {"NodeID": i, "Port": p}, "DeathCause": None}
        for n, (s, i, p) in known.items()
    }
    return {n: one for n, one in told.items() if actor_state_name in (None, one["State"])}
names = "ray", "ray._private", "ray._private.state", "ray.util", "ray.util.scheduling_strategies"
for name in names:
    sys.modules[name] = ModuleType(name)
sys.modules["ray.util.scheduling_strategies"].NodeAffinitySchedulingStrategy = None
ray = sys.modules["ray"]
ray.init, ray.nodes = lambda *_, **__: None, lambda: [{"NodeID": "a1", "NodeName": "n1"}]
state = sys.modules["ray._private.state"]
state.actors, state.available_resources_per_node = actors, dict
exec(compile(open(sys.argv[1]).read(), sys.argv.pop(0), "exec"))
"""


def test_an_actor_that_has_a_worker_runs_also_if_ray_never_creates_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then only the deadline for a start ends it; one that waits for room has a node, too, but no port."""
    started_through(_FAKE_RAY, sys.executable, tmp_path, monkeypatch)
    assert RayExecutor().poll(["made", "stuck", "queued", "again", "gone"]) == {
        "made": JobStatus("running", "n1"),
        "stuck": JobStatus("running", "n1"),
        "queued": JobStatus("waiting", ""),
        "again": JobStatus("waiting", "being started again"),
        "gone": JobStatus("ended", ""),
    }


def changed(*pairs: tuple[str, str]) -> str:
    """A program that executes another one in which some texts are replaced."""
    return f"""
import sys
source = open(sys.argv[1]).read()
for old, new in {pairs}:
    assert old in source
    source = source.replace(old, new)
exec(compile(source, sys.argv.pop(0), "exec"))
"""


@pytest.mark.ray
def test_an_actor_whose_call_a_dying_controller_lost_leaves_its_node(
    tmp_path: Path, ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    losing = changed(("        ray.actor.exit_actor()\n", ""), ("_LEAVE_SECONDS = 10.0", "_LEAVE_SECONDS = 1.0"))
    started_through(losing, ray_cluster.env["MLEREDUX_RAY_PYTHON"], tmp_path, monkeypatch)
    executor = RayExecutor()
    (job,) = executor.submit([JobSpec("run-1", tmp_path, ("/bin/sleep", "3"), Limits(memory_mb=256, cpus=1), 600)])
    until(lambda: executor.poll([job])[job].state == "running")
    until(lambda: executor.poll([job])[job].state == "ended", 60)


def test_a_cluster_that_stops_responding_is_noticed_sooner_than_a_slow_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = """
import sys, time
for number, line in enumerate(sys.stdin):
    time.sleep(600 * number)
    print('{"result": []}', flush=True)
"""
    started_through(once, sys.executable, tmp_path, monkeypatch)
    monkeypatch.setenv(ray_executor.TIMEOUT_VARIABLE, "20")
    executor = RayExecutor()
    for _ in range(2):
        assert list(executor.nodes()) == []
        with pytest.raises(ExecutorError, match="did not respond within 5 seconds"):
            executor.poll(["a-job"])
    calls: list[str] = []

    def refuse(name: str, /, **_arguments: object) -> None:
        calls.append(name)
        raise ExecutorError("Ray can't be reached.")

    monkeypatch.setattr(executor, "_call", refuse)
    with pytest.raises(ExecutorError):
        executor.submit([JobSpec(f"run-{n}", tmp_path, ("/bin/true",), Limits(), 600) for n in range(5)])
    assert calls == ["submit", "stop"], "it is not waited for once for each run"


@pytest.mark.ray
@pytest.mark.parametrize("moment", [0.0, 0.4, 0.8])
def test_cpus_that_a_killed_controller_leased_return(
    tmp_path: Path, ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch, moment: float
) -> None:
    """Its nodes have two CPUs each; workers that it leased and never used would keep them from all later runs."""
    soon = changed(("_STUCK_SECONDS, _LONGEST_PAUSE = 30.0, 600.0", "_STUCK_SECONDS, _LONGEST_PAUSE = 5.0, 10.0"))
    started_through(soon, ray_cluster.env["MLEREDUX_RAY_PYTHON"], tmp_path, monkeypatch)
    executor, limits = RayExecutor(), Limits(memory_mb=256, cpus=1, gpus=0)
    jobs = executor.submit([JobSpec(f"run-{n}", tmp_path, ("/bin/sleep", "600"), limits, 600) for n in range(6)])
    time.sleep(moment)
    ray_cluster.stop_controller()
    ray_cluster.start_controller()
    try:
        until(lambda: {status.state for status in executor.poll(jobs).values()} == {"running"}, 120)
    finally:
        for job in jobs:
            executor.cancel(job)


def test_what_is_wrong_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ray_executor.PYTHON_VARIABLE, str(tmp_path / "python"))
    with pytest.raises(ExecutorError, match="can't be started: No such file"):
        RayExecutor().nodes()
    blind = tmp_path / "python"
    blind.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    blind.chmod(0o755)
    (finding,) = RayExecutor().check()
    assert "can't be imported: No module named 'ray'" in finding.message
    assert "MLEREDUX_RAY_PYTHON" in (finding.remedy or "")
    monkeypatch.setenv(ray_executor.OPTIONS_VARIABLE, "resources=1")
    with pytest.raises(ExecutorError, match="not a JSON object: resources=1"):
        RayExecutor().submit([])
    blind.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setenv(ray_executor.TIMEOUT_VARIABLE, "0.2")
    with pytest.raises(ExecutorError, match=r"did not respond within 0\.2 seconds"):
        RayExecutor().nodes()
    monkeypatch.setenv(ray_executor.TIMEOUT_VARIABLE, "1m")
    with pytest.raises(ExecutorError, match="MLEREDUX_RAY_TIMEOUT is not a number of seconds: 1m"):
        RayExecutor().nodes()
