"""Runs on a real Slurm cluster of several nodes on this machine, whatever happens to it meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.data import DataStore
from mleredux._core.executors.tickets import read_ticket
from mleredux._core.pipeline import Pipeline
from mleredux._core.plans import plan
from mleredux._core.plugins import Catalogue
from mleredux._core.store import Run, RunStore
from mleredux.plugin.executor import ExecutorError, JobStatus
from mleredux_executor_slurm import executor as slurm_executor
from mleredux_executor_slurm.executor import EXECUTOR
from mleredux_testing.slurm import SlurmCluster

PLUGIN = Path(__file__).parent / "toy_slurm.py"
pytestmark = pytest.mark.slurm


class Lab:
    """A runs directory, and a thread that follows its runs at the executor."""

    def __init__(self, home: Path) -> None:
        self.home, self.store = home, RunStore(home / "runs")
        self.catalogue = Catalogue(load=("mleredux_testing.toys", str(PLUGIN)))
        self.said: dict[str, list[str]] = {}
        self.pipeline = self._pipeline()

    def new(self, seed: int, **asked: Any) -> Run:
        fields = plan(self.catalogue, "toy", "waiting", sandbox="process", seed=seed, **asked)
        return self.store.create(**fields, data_dir=str(self.home / "data"))

    def follow(self, runs: list[Run]) -> threading.Thread:
        self.pipeline = self._pipeline()
        thread = threading.Thread(target=self.pipeline.execute, args=(runs,), daemon=True)
        thread.start()
        return thread

    def starts(self, run: Run) -> int:
        path = self.home / "counts" / run.id
        return len(path.read_text().split()) if path.exists() else 0

    def node(self, run: Run) -> str:
        return EXECUTOR.news([read_ticket(run.path)["job"]])[read_ticket(run.path)["job"]].detail

    def _pipeline(self) -> Pipeline:
        def progress(run: Run, message: str) -> None:
            self.said.setdefault(run.id, []).append(message)

        data = DataStore(self.home / "data")
        return Pipeline(self.store, self.catalogue, data, progress=progress, executor=EXECUTOR)


@pytest.fixture
def lab(tmp_path: Path, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    (tmp_path / "counts").mkdir()
    monkeypatch.setenv("COUNTS", str(tmp_path / "counts"))
    made = Lab(tmp_path)
    yield made
    made.pipeline.cancel()
    (tmp_path / "counts" / "go on").touch()


def until(there: Callable[[], Any], seconds: float = 120) -> Any:
    end = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.1)
    return found


def test_a_dead_node_a_requeue_a_cancellation_and_a_restart_lose_nothing(lab: Lab, slurm: SlurmCluster) -> None:
    quick = [lab.new(0) for _ in range(3)]
    on_dead, requeued, cancelled = (lab.new(1) for _ in range(3))
    runs = [*quick, on_dead, requeued, cancelled]
    thread = lab.follow(runs)
    until(lambda: all(lab.starts(run) for run in (on_dead, requeued, cancelled)))
    assert len({read_ticket(run.path)["job"].partition("_")[0] for run in runs}) == 1, "one array for equal limits"
    slurm.kill_controller()
    slurm.start_controller()
    slurm.command("scontrol", "requeue", read_ticket(requeued.path)["job"])
    cancelled.ask_to_cancel()
    slurm.kill_node(lab.node(on_dead) or "n1")
    until(lambda: lab.starts(requeued) == 2)
    until(lambda: cancelled.state == "cancelled")
    (lab.home / "counts" / "go on").touch()
    thread.join(120)
    assert not thread.is_alive(), {run.id: (run.state, lab.said[run.id][-1]) for run in runs}
    assert {run.state for run in runs} - {cancelled.state} == {"done"} and cancelled.state == "cancelled"
    for run in runs:
        events = run.events()
        assert [event.seq for event in events] == list(range(len(events)))
        said = sum(event.type == "attempt" and event.data["status"] == "starting" for event in events)
        assert lab.starts(run) <= said, "no agent was started twice without a record"
        assert sum(event.type == "state" and event.data["state"] in ("done", "cancelled") for event in events) == 1
    assert all(lab.starts(run) == 1 for run in quick)
    for name in slurm.nodes:
        if slurm.command("sinfo", "--noheader", "--nodes", name, "--format=%T").strip().startswith("down"):
            slurm.start_node(name)


def test_runs_are_followed_by_the_next_program_and_not_submitted_again(lab: Lab, slurm: SlurmCluster) -> None:
    run = lab.new(1)
    first = lab.follow([run])
    until(lambda: lab.starts(run))
    job = read_ticket(run.path)["job"]
    again = lab.follow([run])
    time.sleep(2)
    assert read_ticket(run.path)["job"] == job
    (lab.home / "counts" / "go on").touch()
    first.join(60), again.join(60)
    assert (run.state, lab.starts(run)) == ("done", 1)


def test_devices_that_slurm_gave_are_those_of_the_agent(lab: Lab) -> None:
    run = lab.new(0, limits={"gpus": 1})
    lab.follow([run]).join(90)
    assert run.state == "done", run.message
    assert (run.output_dir / "devices").read_text().strip().isdigit()


def test_the_nodes_have_capacity_and_labels(slurm: SlurmCluster) -> None:
    nodes = EXECUTOR.nodes()
    assert {node.name for node in nodes} == set(slurm.nodes)
    assert {(node.cpus, node.memory_mb, node.gpus, node.labels) for node in nodes} == {(2.0, 4000, 2, ("high", "low"))}
    assert EXECUTOR.check()[0].ok
    assert EXECUTOR.news(["999_0"]) == {"999_0": JobStatus("ended")}


def test_a_refusal_of_slurm_is_one_sentence(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(slurm_executor.OPTIONS_VARIABLE, "--partition=none-of-that-name")
    with pytest.raises(ExecutorError, match=r"sbatch failed: .*partition"):
        lab.pipeline.execute([lab.new(0)])
