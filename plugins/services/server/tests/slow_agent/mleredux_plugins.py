"""An agent for tests of faults: it runs for tenths of a second given by its seed, then submits the sample."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.hookspecs import hookimpl
from mleredux.models import Agent, Limits

mleredux_contract = 2

CODE = """
import json, os, shutil, time
task = json.load(open(os.environ["MLEREDUX_TASK_DIR"] + "/task.json"))
begun = time.monotonic()
print("begun", flush=True)
for number in range(int(os.environ["MLEREDUX_SEED"])):
    time.sleep(0.1)
    print("working", number, flush=True)
shutil.copyfile(os.path.join(os.environ["MLEREDUX_DATA_DIR"], task["sample"]), os.environ["MLEREDUX_SUBMISSION"])
print(f"done after {time.monotonic() - begun:.1f} s", flush=True)
"""


@hookimpl
def mleredux_register_agents() -> Iterable[Agent]:
    """The agent."""
    limits = Limits(time_limit=120, cpus=0.5, memory_mb=256, disk_mb=100)
    return [Agent(id="slow", title="Takes its time", command=("python", "-c", CODE), limits=limits)]
