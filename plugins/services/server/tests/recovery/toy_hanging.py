"""A plugin for tests of leases: hooks that never return, for runs with certain seeds."""

from __future__ import annotations

import threading
import time
from typing import Any

from mleredux import hookimpl
from mleredux._core.store import Run
from mleredux.models import Event

mleredux_contract = 2
DEADLOCK, LOOP = 1, 2


@hookimpl
def mleredux_run_event(run: Run, event: Event) -> None:
    if run.spec.seed == DEADLOCK and event.type == "state" and event.data["state"] == "grading":
        lock = threading.Lock()
        with lock, lock:
            raise AssertionError("this is never reached")


@hookimpl
def mleredux_produce_artifacts(run: Run) -> Any:
    while run.spec.seed == LOOP:
        time.sleep(0.01)
