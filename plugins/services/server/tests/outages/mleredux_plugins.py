"""Runs for tests of outages: each stops in the stage that a file names, until the file is gone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from mleredux.hookspecs import hookimpl
from mleredux.models import Agent, Event, Limits, Task
from mleredux.plugin.artifact import Run
from mleredux.plugin.executor import Executor
from mleredux_testing.toys import toy_task

mleredux_contract = 2
HOLD = Path(os.environ["HOLD"])
CODE = """
import os, shutil, time
print("begun", flush=True)
time.sleep(int(os.environ["MLEREDUX_SEED"]) % 10)
shutil.copyfile(os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv", os.environ["MLEREDUX_SUBMISSION"])
"""


@hookimpl
def mleredux_register_agents() -> Iterable[Agent]:
    """An agent that works for the seconds of its seed's last digit."""
    limits = Limits(time_limit=120, cpus=0.5, memory_mb=256, disk_mb=20)
    return [Agent(id="brief", title="Submits the sample", command=("python", "-c", CODE), limits=limits)]


@hookimpl
def mleredux_register_tasks() -> Iterable[Task]:
    """Tasks whose data is prepared separately."""
    return [toy_task.model_copy(update={"id": f"toy-{number}"}) for number in range(10)]


@hookimpl
def mleredux_register_executors() -> Iterable[Executor]:
    """Nodes that share no files with the server, if the test has any."""
    if "NODES" not in os.environ:
        return []
    from mleredux_support.s3 import ApartExecutor

    nodes = Path(os.environ["NODES"])
    way = {"AWS_ENDPOINT_URL": os.environ["NODES_ENDPOINT"]}
    return [ApartExecutor(Path(os.environ["HIDDEN"]), [nodes / "a", nodes / "b"], **way)]


@hookimpl
def mleredux_run_event(run: Run, event: Event) -> None:
    """Wait at the start of a stage."""
    held = HOLD / f"{run.spec.seed}-{event.data.get('state')}"
    while event.type == "state" and held.exists():
        held.with_name(f"{run.spec.seed}-reached").touch()
        time.sleep(0.1)
