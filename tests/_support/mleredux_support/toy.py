"""A toy plugin file, and runs of it in this process or in the real program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import pytest
from mleredux._core.data import DataStore
from mleredux._core.data.datastore import Prepared
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.resume import check_resumable
from mleredux._core.stages.prepare import prepare
from mleredux._core.store import Run, RunStore
from mleredux.models import Task

from mleredux_support.plans import plan_of

TOY = Path(__file__).parents[3] / "core/tests/toy"


class Toy:
    """The toy plugin with runs and data of the test's own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.catalogue = Catalogue(load=(str(TOY),))
        self.store = RunStore(home / "runs")
        self.data = DataStore(home / "data")
        self.gate = home / "gate"

    def task(self, name: str = "toy") -> Task:
        return self.catalogue.task(name)

    def copy_of_sample(self, name: str, folder: Path) -> tuple[Task, Prepared, Path]:
        """Prepare a task; write a copy of its sample submission into a folder."""
        task = self.task(name)
        prepared = prepare(task, self.catalogue, self.data)
        path = folder / "submission.csv"
        path.write_bytes((prepared.public / "sample_submission.csv").read_bytes())
        return task, prepared, path

    def new(self, agent: str = "copy", task: str = "toy", **asked: Any) -> Run:
        return self.store.create(plan_of(self.catalogue, task, agent, sandbox="process", **asked), self.data.path)

    def pipeline(self, **more: Any) -> Pipeline:
        return Pipeline(self.store, self.catalogue, self.data, **more)

    def run(self, agent: str = "copy", task: str = "toy", **asked: Any) -> Run:
        run = self.new(agent, task, **asked)
        self.pipeline().execute([run])
        return run

    def resume(self, run: Run) -> Run:
        again = self.store.get(run.id)
        check_resumable(again, self.catalogue)
        self.pipeline().execute([again])
        return again

    def hold(self, stage: str) -> Path:
        """Make a stage wait until the file given is removed; `<file>.reached` appears when it is entered."""
        self.gate.mkdir(exist_ok=True)
        (self.gate / stage).touch()
        return self.gate / stage

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start the real program, `mleredux run …`, in a separate process."""
        return subprocess.Popen(
            [
                *(sys.executable, "-c", "from mleredux._core.cli.root import main; main()", "-p", str(TOY), "run"),
                *arguments,
                *("--runs-dir", str(self.store.path), "--data-dir", str(self.data.path)),
            ],
            env={**os.environ, "TOY_GATE": str(self.gate), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def only_run(self) -> Run:
        (name,) = self.store.ids()
        return self.store.get(name)

    def processes(self, run: Run) -> list[psutil.Process]:
        """What lives of a run's agent."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("MLEREDUX_RUN_ID") == run.id:
                    found.append(process)
            except psutil.Error:
                continue
        return [process for process in found if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def wait_until(there: Callable[[], Any], seconds: float = 120) -> Any:
    """What a condition gives once it gives something true."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if result := there():
            return result
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds:g} seconds in vain")


def use_toy(home: Path, monkeypatch: pytest.MonkeyPatch, *beside: str) -> Iterator[Toy]:
    """Yield the toy plugin, without plugins but those named; nothing of its runs may outlive the test."""
    monkeypatch.syspath_prepend(str(TOY))
    monkeypatch.setenv("PYTHONPATH", str(TOY))
    monkeypatch.setenv("TOY_GATE", str(home / "gate"))
    others = {point.name for point in metadata.entry_points(group="mleredux")} - {*beside}
    monkeypatch.setenv("MLEREDUX_BLOCK_PLUGINS", ",".join(others))
    made = Toy(home)
    set_current(made.catalogue)
    yield made
    set_current(None)
    left = [process for name in made.store.ids() for process in made.processes(Run(made.store.path / name))]
    for process in left:
        os.kill(process.pid, signal.SIGKILL)
    assert not left, f"the agent outlived the test: {left}"
