"""A plugin for tests: an agent that records its starts and, with an odd seed, waits until it may continue."""

from __future__ import annotations

import os

from mleredux import hookimpl
from mleredux.models import Agent, Limits

mleredux_contract = 2
FOLDER_VARIABLE = "MLEREDUX_TESTING_STARTS"
WORK_VARIABLE = "MLEREDUX_TESTING_WORK"
"""Seconds that the agent runs."""
GO_ON = "go on"
WORK = f'sleep "${WORK_VARIABLE}"'
_COMMAND = f"""
echo $$ >> "${FOLDER_VARIABLE}/$MLEREDUX_RUN_ID"
echo "$CUDA_VISIBLE_DEVICES" > "$MLEREDUX_OUTPUT_DIR/devices"
while [ $((MLEREDUX_SEED % 2)) -eq 1 ] && [ ! -e "${FOLDER_VARIABLE}/{GO_ON}" ]; do sleep 0.2; done
{WORK}
cp "$MLEREDUX_DATA_DIR/sample_submission.csv" "$MLEREDUX_SUBMISSION"
"""


@hookimpl
def mleredux_register_agents() -> list[Agent]:
    """Return the agent."""
    return [
        Agent(
            id="waiting",
            title="Waits; for tests",
            command=("sh", "-c", _COMMAND),
            env={
                FOLDER_VARIABLE: os.environ.get(FOLDER_VARIABLE, "/nonexistent"),
                WORK_VARIABLE: os.environ.get(WORK_VARIABLE, "0"),
            },
            limits=Limits(time_limit=300, memory_mb=256, cpus=1, grace=1),
        )
    ]
