"""Leases on run directories: renewed while there is progress, and late writers are refused."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from mleredux._core.store import Run, RunStore
from mleredux.errors import ResumeRefused
from mleredux.models import Limits, RunPlan, State
from mleredux_executor_nodes.lease import Lease, fence_of, new_fence, read_lease, revoke_lease


@pytest.fixture
def run(tmp_path: Path) -> Run:
    plan = RunPlan(task="toy", agent="dummy", sandbox="process", seed=0, limits=Limits())
    return RunStore(tmp_path / "runs").create(plan, tmp_path)


def test_a_late_worker_writes_nothing_and_the_next_one_takes_its_lock(run: Run) -> None:
    late, fence = Run(run.path), new_fence(run.path)
    assert late.lock.acquire()
    with Lease(run.path, fence) as lease:
        late.guard(lease.check)
        late.enter(State.PREPARING)
        assert not Run(run.path).lock.acquire()
        revoke_lease(run.path)
        assert lease.lost()
        for write in (lambda: late.enter(State.BUILDING), lambda: late.record_use(python="3")):
            with pytest.raises(ResumeRefused, match="given to another worker"):
                write()
    following = Run(run.path)
    assert following.lock.acquire() and following.state is State.PREPARING and following.use.python is None
    following.lock.release()
    late.lock.release()


def test_a_write_that_was_under_way_when_the_run_was_taken_away_is_lost(run: Run) -> None:
    """The worker is suspended between its check and its write."""
    late, passed, go_on = Run(run.path), threading.Event(), threading.Event()

    def suspended() -> None:
        passed.set()
        go_on.wait(30)

    late.guard(suspended)
    writer = threading.Thread(target=lambda: late.enter(State.PREPARING))
    writer.start()
    assert passed.wait(30)
    revoke_lease(run.path)
    following = Run(run.path)
    following.enter(State.PREPARING)
    go_on.set()
    writer.join()
    assert [event.seq for event in Run(run.path).events()] == [0, 1]
    following.enter(State.BUILDING)
    assert [event.seq for event in Run(run.path).events()] == [0, 1, 2]


def test_fences_only_grow(tmp_path: Path) -> None:
    assert fence_of(tmp_path) == 0
    assert [new_fence(tmp_path), revoke_lease(tmp_path), new_fence(tmp_path)] == [1, 2, 3]
    with pytest.raises(ResumeRefused):
        Lease(tmp_path, 2).__enter__()


STUCK = """
import sys, threading
from pathlib import Path
from mleredux_executor_nodes.lease import Lease, new_fence, read_lease

folder = Path(sys.argv[1])
with Lease(folder, new_fence(folder), seconds=1.5, patience=lambda: 1.0):
    while (read_lease(folder) or {"beat": 0})["beat"] < 20:  # reading is work
        pass
    threading.Event().wait()
"""


def test_a_lease_is_renewed_while_its_thread_works_and_not_while_it_is_stuck(tmp_path: Path) -> None:
    worker = subprocess.Popen([sys.executable, "-c", STUCK, str(tmp_path)])  # alone: other threads here may work
    try:
        end = time.monotonic() + 120
        while (read_lease(tmp_path) or {"beat": 0})["beat"] < 20 or time.time() - renewed(tmp_path) < 4:
            assert time.monotonic() < end and worker.poll() is None
            time.sleep(0.1)
    finally:
        worker.kill()
        worker.wait()


def renewed(folder: Path) -> float:
    """When the lease was renewed last, in seconds."""
    return (folder / ".lease").stat().st_mtime
