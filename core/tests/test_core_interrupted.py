"""Runs whose process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux._core.store import RunStore
from mleredux._core.store.run import write_ticket
from mleredux.models import Cause, Limits, RunPlan, State

WORKER = """
import sys, time
from pathlib import Path
from mleredux.models import State
from mleredux._core.store.run import Run
run = Run(Path(sys.argv[1]))
run.lock.acquire()
for state in (State.PREPARING, State.RUNNING):
    run.enter(state)
print("works", flush=True)
time.sleep(600)
"""


def test_a_killed_run_is_interrupted_until_it_goes_on(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    run = store.create(RunPlan(task="digits", agent="dummy", sandbox="process", seed=0, limits=Limits()), tmp_path)

    def shown() -> set[str]:
        return {run.status, run.record()["status"], store.rows()[0]["status"]}

    assert shown() == {"queued"}
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(run.path)], stdout=subprocess.PIPE)
    assert worker.stdout is not None and worker.stdout.readline() == b"works\n"
    assert shown() == {"running"}
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    assert shown() == {"interrupted"}
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before, "showing it writes nothing"
    assert [row["id"] for row in store.rows(status="interrupted")] == [run.id] and not store.rows(status="running")
    told = CliRunner().invoke(root, ["runs", "--runs-dir", str(store.path), "show", run.id], catch_exceptions=False)
    assert "interrupted" in told.stdout and f"`mleredux run --resume {run.id[-6:]}`" in told.output.replace("\n", " ")
    with run.lock:
        assert shown() == {"running"}
    run.hold(None)
    assert shown() == {"running"}, "it is held back"
    run.release()
    write_ticket(run.path, {"job": "17", "executor": "slurm"})
    assert shown() == {"running"}, "its node says whether it goes on"
    write_ticket(run.path, {})
    assert run.give_up(Cause.CANCELLED, "A user cancelled the run.")
    assert run.state is State.CANCELLED and shown() == {"cancelled"}
