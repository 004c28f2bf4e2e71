"""Runs are tracked while active, over HTTP, by a real `mlflow server`; and what happens when it is down."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux._core.stages.produce import write_manifest
from mleredux._core.store import Run, RunStore
from mleredux.models import Limits, RunPlan, State
from mleredux_support.ports import free_port

SECONDS = 240


def wait_for(what: Callable[[], Any]) -> Any:
    """Return the function's result once it is not empty."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {SECONDS} seconds")


class Server:
    """A process of `mlflow server`, with the group of its workers."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.uri = f"http://127.0.0.1:{port}"
        store = ["--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"]
        places = [*store, "--artifacts-destination", str(folder / "artifacts")]
        self._log = (folder / "server.log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *places, "--port", str(port), "--workers", "1"],
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"},
            cwd=folder,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def answers(self) -> bool:
        assert self.process.poll() is None, Path(self._log.name).read_text()
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def signal(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    def stop(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()
        self._log.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("mlflow-server")
    shutil.copy(empty_store, folder)
    made = Server(folder)
    try:
        wait_for(made.answers)
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def client(server: Server) -> Any:
    from mlflow.tracking import MlflowClient

    return MlflowClient(server.uri, server.uri)


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Run]]:
    """Start a run whose events the plugin receives as it does from the pipeline."""
    import mleredux_tracker_mlflow
    from mleredux_tracker_mlflow import follower as following

    begun: list[Run] = []
    monkeypatch.setattr(following, "_follower", following.Follower())

    def make(uri: str, task: str, wait: float = 120) -> Run:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        monkeypatch.setenv("MLEREDUX_MLFLOW_WAIT", str(wait))
        store = RunStore(tmp_path / "runs")
        run = store.create(RunPlan(task=task, agent="a", sandbox="s", seed=0, limits=Limits()), "d")
        assert run.lock.acquire()
        begun.append(run)
        run.observers.append(mleredux_tracker_mlflow.mleredux_run_event)
        run.enter(State.PREPARING)
        return run

    yield make
    for run in begun:
        run.lock.release()


def end(run: Run) -> float:
    """End a run, and return how many seconds its last event took."""
    run.enter(State.PRODUCING)
    write_manifest(run)
    started = time.monotonic()
    run.enter(State.DONE)
    return time.monotonic() - started


def found(client: Any, task: str) -> Any:
    experiment = client.get_experiment_by_name(task)
    runs = client.search_runs([experiment.experiment_id]) if experiment else []
    assert len(runs) < 2
    return runs[0] if runs else None


def test_a_run_of_the_command_is_tracked_over_http(server: Server, client: Any, tmp_path: Path) -> None:
    arguments = ["run", "digits", "--agent", "dummy", "--sandbox", "process", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "mleredux", *arguments, "--runs-dir", str(tmp_path / "runs")],
        env={**os.environ, "MLFLOW_TRACKING_URI": server.uri},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "MLflow" not in done.stderr and "WARNING" not in done.stderr
    record, there = json.loads(done.stdout), found(client, "digits")
    assert (there.info.run_name, there.info.status) == (record["id"], "FINISHED")
    assert there.data.metrics["score"] == record["report"]["score"]
    assert there.data.metrics["stage_seconds/running"] > 0
    fetched = client.download_artifacts(there.info.run_id, "output/submission.csv", str(tmp_path))
    assert Path(fetched).read_bytes() == (Path(record["path"]) / "output" / "submission.csv").read_bytes()


def test_a_run_is_visible_while_it_is_active(server: Server, client: Any, begin: Any) -> None:
    run = begin(server.uri, "live")
    started = time.thread_time()
    run.enter(State.RUNNING)
    assert time.thread_time() - started < 0.5  # the first event even imports MLflow, in its own thread
    there = wait_for(lambda: found(client, "live"))
    assert there.info.status == "RUNNING"
    wait_for(lambda: found(client, "live").data.tags.get("mleredux.status") == "running")
    run.emit("stage", stage="running", status="finished", seconds=1.5)
    end(run)
    there = found(client, "live")  # no waiting here: the end of the run waited
    assert (there.info.status, there.data.metrics["stage_seconds/running"]) == ("FINISHED", 1.5)
    assert there.data.tags["mleredux.status"] == "done"


def test_if_mlflow_is_down_a_run_logs_one_line(begin: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), socket.create_server(("127.0.0.1", 0)) as closed:
        uri = f"http://me:hunter2@127.0.0.1:{closed.getsockname()[1]}"
        closed.close()
        run = begin(uri, "down", wait=200)
        assert end(run) < 100
        assert end(begin(uri, "down", wait=200)) < 50  # already known to be down
    assert run.state is State.DONE
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2 and "does not respond. `mleredux runs track" in told[0]  # one per run
    assert "hunter2" not in caplog.text + (run.path / "events.jsonl").read_text()


def test_if_mlflow_hangs_runs_wait_once_and_missing_data_is_sent_later(
    server: Server, client: Any, begin: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server.signal(signal.SIGSTOP)
    try:
        with caplog.at_level(logging.WARNING):
            first = begin(server.uri, "hanging", wait=3)
            assert 3 <= end(first) < 40
            second = begin(server.uri, "hanging too", wait=90)
            assert end(second) < 40  # does not wait as long again
    finally:
        server.signal(signal.SIGCONT)
    told = [record.getMessage() for record in caplog.records if record.name == "mleredux.mlflow"]
    assert len(told) == 2 and "took longer than 3 seconds" in told[0] and first.id in told[0]
    wait_for(lambda: (there := found(client, "hanging")) and there.info.status == "FINISHED")  # without a command
    wait_for(lambda: (there := found(client, "hanging too")) and there.info.status == "FINISHED")
    for run in (first, second):
        run.lock.release()
        track = ["runs", "--runs-dir", str(run.path.parent), "track", run.id, "--to", server.uri]
        wait_for(lambda track=track, run=run: CliRunner().invoke(root, track).output == f"{run.id}  up to date\n")
    assert found(client, "hanging") and found(client, "hanging too")  # one each
