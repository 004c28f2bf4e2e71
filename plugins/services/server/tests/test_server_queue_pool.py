"""What the scheduler detects of workers and sandboxes, including unexpected exits and failures."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins import Catalogue
from mleredux_server.app import make_service
from mleredux_server.scheduler import sandbox_health as broken
from mleredux_server.scheduler.pool import Pool, WorkerProcess
from mleredux_server.scheduler.tally import Tally
from mleredux_server.settings import Settings


@pytest.mark.parametrize("said", ['{"done": "a"}', '{"done": "a", "err', "no word", ""])
def test_the_exit_of_a_worker_is_detected_whatever_it_sent_last(tmp_path: Path, said: str) -> None:
    woken, tally = threading.Event(), Tally()
    pool = Pool(Settings(runs_dir=tmp_path / "runs"), Catalogue(), woken.set, tally)
    command = ["sh", "-c", 'printf %s "$1"; kill -9 $$', "sh", said]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    worker = WorkerProcess("run", process, None, job="a")
    pool._listen(worker)
    heard = [told.done for told in pool.poll()]
    assert heard == [{"done": "a"}, None] if said.endswith("}") else heard == [None]
    assert woken.is_set() and worker.exited and tally.workers_died == 1


def test_a_sandbox_that_fails_unexpectedly_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service(Settings(runs_dir=tmp_path / "runs"), Catalogue())
    asked: list[str] = []

    def sweep(_service: Any, name: str) -> None:
        asked.append(name)
        if len(asked) < 3:
            raise KeyError("nobody thought of that")

    monkeypatch.setattr(broken, "sweep_sandbox", sweep)
    monkeypatch.setattr(broken, "_AGAIN", 0.01)
    sandboxes = broken.BrokenSandboxes(service, threading.Event())
    sandboxes.suspect("process")
    deadline = time.monotonic() + 60
    while sandboxes.known():
        assert time.monotonic() < deadline, asked
        time.sleep(0.01)
    assert asked == ["process"] * 3 and service.wake.is_set()
    service.database.close()
