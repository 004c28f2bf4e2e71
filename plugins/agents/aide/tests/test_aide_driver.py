"""What of the driver needs no AIDE: time, and what the sandbox tells."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from mleredux_agentkit import Task

CLOCK = """
import sys, time
from mleredux_agentkit import Clock, Stopped
clock = Clock(time.time() + float(sys.argv[1]))
try:
    try:
        print("ready", flush=True)
        time.sleep(30)
    except Exception:
        print("held up by a library")
except Stopped as stopped:
    print(stopped)
    time.sleep(0.3)
"""
FORKED = """
import os, signal, time
from mleredux_agentkit import Clock
clock = Clock(time.time() + 30)
child = os.fork()
if child == 0:
    time.sleep(30)
    os._exit(0)
time.sleep(0.1)
os.kill(child, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_the_time_ends_the_work_past_any_except_exception() -> None:
    started = time.monotonic()
    ran = subprocess.run([sys.executable, "-c", CLOCK, "0.2"], capture_output=True, text=True, timeout=20)
    assert ran.stdout.split("\n")[1] == "time is nearly up", ran.stderr
    assert time.monotonic() - started < 15


def test_sigterm_ends_the_work_and_a_second_one_does_not_disturb_the_end() -> None:
    process = subprocess.Popen([sys.executable, "-c", CLOCK, "30"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.stdout.readline() == "asked to end\n"
    process.terminate()
    assert process.wait(timeout=20) == 0


def test_solutions_can_be_stopped_as_any_process() -> None:
    ran = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=20)
    assert ran.stdout.strip() == "-15", ran.stderr


def test_the_work_ends_before_the_sandbox_does(tmp_path: Path) -> None:
    (tmp_path / "description.md").write_text("What.")
    (tmp_path / "task.json").write_text(json.dumps({"sample": "sample.csv"}))
    variables = {"MLEREDUX_TASK_DIR": str(tmp_path), "MLEREDUX_TIME_LIMIT": "1000", "MLEREDUX_DEADLINE": "5000"}
    settings = Task(variables)
    assert settings.deadline == 4970
    assert settings.data_dir == tmp_path / "data" and settings.submission == Path("/output/submission.csv")
    assert Task({**variables, "MLEREDUX_TIME_LIMIT": "10"}).deadline == 4998


def test_the_driver_imports_nothing_of_mleredux() -> None:
    code = "import sys, mleredux_agent_aide.driver.__main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not [name for name in loaded if name == "mleredux" or name.startswith("mleredux.")]
