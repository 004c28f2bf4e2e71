"""A plugin for tests of recovery: an agent that counts its starts, and stages that take some time."""

from __future__ import annotations

import os
import time

from mleredux import hookimpl
from mleredux._core.store import Run
from mleredux.models import Agent, Event, Limits

mleredux_contract = 2

_COUNT = 'echo $$ >> "$COUNTS/$MLEREDUX_RUN_ID"'
# The seed sets how long it runs, in tenths of a second; 9999: until it is told to continue.
_WORK = """
while [ $MLEREDUX_SEED -eq 9999 ] && [ ! -e "$COUNTS/go on" ]; do sleep 0.1; done
[ $MLEREDUX_SEED -eq 9999 ] || sleep $(($MLEREDUX_SEED / 10)).$(($MLEREDUX_SEED % 10))
cp "$MLEREDUX_DATA_DIR/sample_submission.csv" "$MLEREDUX_SUBMISSION"
"""


@hookimpl
def mleredux_register_agents() -> list[Agent]:
    return [
        Agent(
            id="counting",
            title="Counts its starts; for tests",
            command=("sh", "-c", _COUNT + _WORK),
            env={"COUNTS": os.environ.get("COUNTS", "/nonexistent")},
            limits=Limits(time_limit=300, memory_mb=256, cpus=1, grace=1),
        ),
        Agent(
            id="contained",
            title="Logs its start; for tests",
            command=("sh", "-c", "echo started\n" + _WORK),
            isolated=True,
            limits=Limits(time_limit=300, memory_mb=256, cpus=1, grace=1),
        ),
    ]


@hookimpl
def mleredux_run_event(run: Run, event: Event) -> None:
    if event.type == "state" and event.data["state"] in ("preparing", "building", "producing"):
        time.sleep(float(os.environ.get("STAGE_SECONDS", "0")))
