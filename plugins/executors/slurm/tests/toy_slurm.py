"""A plugin for tests: an agent that counts its starts, and with seed 1 waits until it is told to go on."""

from __future__ import annotations

import os

from mleredux import hookimpl
from mleredux._core.models import Agent, Limits

mleredux_contract = 2
_COMMAND = """
echo $$ >> "$COUNTS/$MLEREDUX_RUN_ID"
echo "$CUDA_VISIBLE_DEVICES" > "$MLEREDUX_OUTPUT_DIR/devices"
while [ $MLEREDUX_SEED -eq 1 ] && [ ! -e "$COUNTS/go on" ]; do sleep 0.1; done
cp "$MLEREDUX_DATA_DIR/sample_submission.csv" "$MLEREDUX_SUBMISSION"
"""


@hookimpl
def mleredux_register_agents() -> list[Agent]:
    return [
        Agent(
            id="waiting",
            title="Waits; for tests",
            command=("sh", "-c", _COMMAND),
            env={"COUNTS": os.environ.get("COUNTS", "/nonexistent")},
            limits=Limits(time_limit=300, memory_mb=256, cpus=1, grace=1),
        )
    ]
