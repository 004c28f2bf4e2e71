"""The source of a run's steps: its rollout or, while the run is active, the part that its agent has written so far."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from pathlib import Path

from mleredux.plugin.artifact import Run
from mleredux_artifact_reports import shared
from mleredux_rollout import dump_rollout

from mleredux_view.stepfile import StepFile, steps_of

_KEPT = 4
_SECONDS = 2.0
"""Interval in seconds at which the trace of an active run is read again."""
_live: OrderedDict[Path, tuple[float, StepFile]] = OrderedDict()
_lock = threading.Lock()


def trace_of(run: Run) -> StepFile | None:
    """Return the run's rollout, or the part written so far; None if there is none."""
    steps = steps_of(run.path)
    if steps is not None or run.state.final:
        return steps
    with _lock:
        kept = _live.get(run.path)
        if kept is None or time.monotonic() - kept[0] > _SECONDS:
            _, trajectory = shared.trace_of(run, [])
            kept = (time.monotonic(), StepFile(dump_rollout(trajectory).decode()))
            _live[run.path] = kept
            while len(_live) > _KEPT:
                _live.popitem(last=False)
        return kept[1]
