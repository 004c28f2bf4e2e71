"""Whatever an agent does, the host loses no more of its disk than the agent's limit, and the run says what happened."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mleredux._core.data import DataStore
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins import Catalogue
from mleredux._core.store import Run, RunStore
from mleredux._core.submissions.intake import disk_usage
from mleredux.models import Cause, State
from mleredux_support.disk_attacks import DISK_ATTACKS_PLUGIN, FILLING, HIDING
from mleredux_support.plans import plan_of
from mleredux_testing.toys import TOY_PLUGIN

pytestmark = pytest.mark.attack

LIMIT = 48 << 20


@contextmanager
def watched(runs: list[Run]) -> Iterator[dict[str, int]]:
    """The most that each run's directory, and its container's log, ever took of the host's disk."""
    peak = dict.fromkeys((run.id for run in runs), 0)
    stop = threading.Event()

    def image(run: Run) -> int:
        return disk_usage(run.path / ".volume.img")[0]

    def look() -> None:
        while not stop.wait(0.2):
            for run in [run for run in runs if run.alive]:
                ids = [event.data["handle"] for event in run.events() if event.type == "agent"]
                engine = [Path("/var/lib/docker/containers") / name for name in ids]
                before, used = image(run), disk_usage(run.path, *engine)[0]
                moved = max(0, before - image(run))  # counted at both places, if it was moved meanwhile
                peak[run.id] = max(peak[run.id], used - moved)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def loops_left() -> set[str]:
    """Loop devices whose file is gone."""
    shown = subprocess.run(["losetup", "--list", "--noheadings"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in shown.splitlines() if "(deleted)" in line}


@pytest.mark.usefixtures("root")
def test_no_attack_takes_more_of_the_disk_than_the_limit(engine: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    before = loops_left()
    catalogue = Catalogue(load=[TOY_PLUGIN, DISK_ATTACKS_PLUGIN])
    store, data = RunStore(tmp_path / "runs"), DataStore(tmp_path / "data")
    runs = {
        name: store.create(plan_of(catalogue, "toy", f"disk-{name}", sandbox=engine), data.path)
        for name in (*FILLING, *HIDING)
    }
    with watched(list(runs.values())) as peak:
        Pipeline(store, catalogue, data, jobs=4).execute(list(runs.values()))
    wrong = []
    for name, run in runs.items():
        after = disk_usage(run.path)[0]
        said = f"{name}: {run.state} {run.cause} {run.message}, {peak[run.id] >> 20} MB, then {after >> 20} MB"
        print(said)
        if name in FILLING and (run.cause is not Cause.OUT_OF_DISK or not run.report or run.report.limit != "disk"):
            wrong.append(f"{said}; {run.agent_log.read_bytes()[-300:]!r}")
        if name in HIDING and (run.state is not State.DONE or after > LIMIT // 8):
            wrong.append(f"{said}; {run.agent_log.read_bytes()[-300:]!r}")
        if peak[run.id] > LIMIT * (1.06 if name != "output" else 1.4) or after > LIMIT * 1.06:
            wrong.append(said)
        if run.report is None:
            continue
        if not run.report.valid_submission:
            wrong.append(f"{name}: the submission that was there before does not count: {run.report.message}")
        if run.report.ledger.disk.enforced_by != "volume":
            wrong.append(f"{name}: {run.report.ledger.disk}")
    assert not wrong, "\n".join(wrong)
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text(), "nothing is left mounted"
    until = time.monotonic() + 30  # other tests' disks are removed meanwhile
    while left := loops_left() - before:
        assert time.monotonic() < until, left
        time.sleep(0.5)
