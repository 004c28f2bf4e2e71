"""Many episodes at once: none is lost, nothing is left behind, and a step sees only its own episode."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from mleredux._core.store import RunStore
from mleredux._core.submissions.endpoint import socket_path
from mleredux_bridge_gymnasium.environment import PYTHON, SHELL, TaskEnvironment

VECTOR = Path(__file__).parents[4] / "benchmarks" / "vector.py"
EPISODES, MEASURED = 128, 32


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TaskEnvironment]:
    monkeypatch.setenv("SECRET_OF_THE_TRAINER", "hunter2")
    limits = {"memory_mb": 300, "cpus": 0.1}
    places: dict[str, Any] = {"runs_dir": tmp_path / "runs", "data_dir": tmp_path / "data", "limits": limits}
    with_run = TaskEnvironment("wine", sandbox="process", **places)
    with_run.reset(seed=0)
    yield with_run
    with_run.close()


def step(env: TaskEnvironment, text: str, kind: int = SHELL) -> str:
    return str(env.step({"kind": kind, "text": text})[0]["text"])


def measured(episodes: int, *words: str) -> dict[str, Any]:
    words = (sys.executable, str(VECTOR), "--inner", "--bridge", "gymnasium", "--sizes", str(episodes), *words)
    line = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    counts: dict[str, Any] = json.loads(line)
    return counts


def test_many_episodes_lose_and_leak_nothing() -> None:
    counts = measured(EPISODES, "--soak", "5")
    assert counts["lost"] == 0, counts["why"]
    assert counts["played"] >= EPISODES and max(counts["leaked"].values()) <= 4, counts


def test_a_reset_and_a_step_cost_about_as_much_as_an_interpreter() -> None:
    before = psutil.Process().cpu_times()
    for _ in range(20):
        subprocess.run([sys.executable, "-c", "import json"], check=True)
    after = psutil.Process().cpu_times()
    interpreter = 1e3 * sum(after[at] - before[at] for at in (2, 3)) / 20
    counts = measured(MEASURED)
    assert counts["CPU ms/reset"] < 5 * interpreter and counts["CPU ms/step"] < 2 * interpreter, (
        counts,
        interpreter,
    )
    assert counts["MB each"] < 2


@pytest.mark.parametrize(
    "command",
    [
        "sleep 987 & sleep 987 & true",
        "setsid sleep 987 & true",
        "(setsid sh -c 'sleep 987 & sleep 987' &) ; true",
        "setsid sleep 987 & kill -9 $PPID",
    ],
    ids=["background", "own-session", "orphan", "kills-its-guard"],
)
def test_nothing_survives_its_step(env: TaskEnvironment, command: str) -> None:
    step(env, command)
    until = time.monotonic() + 30
    while left := [one for one in psutil.Process().children(recursive=True) if "987" in cmdline(one)]:
        assert time.monotonic() < until, left
        time.sleep(0.1)
    assert step(env, "echo on") == "on\n"


def cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.parametrize("library", ["", "import numpy, pandas, sklearn"], ids=["bare", "with-libraries"])
def test_forked_code_has_the_limits_and_the_privacy_of_a_new_interpreter(env: TaskEnvironment, library: str) -> None:
    code = f"""{library}
import json, os, resource, sys, tempfile
if "numpy" in sys.modules:
    print(sys.modules["numpy"].random.rand(), file=open("drawn", "a"))
print(json.dumps([__name__, sorted(map(int, os.listdir("/proc/self/fd")))[:3], len(os.listdir("/proc/self/fd")),
    resource.getrlimit(resource.RLIMIT_DATA)[0], tempfile.gettempdir() == os.environ["TMPDIR"], sys.argv == [__file__],
    "SECRET_OF_THE_TRAINER" in os.environ, "hunter2" in open("/proc/self/environ").read()]))
sys.exit(3)
"""
    for _ in range(2):
        seen, _, _, _, _ = env.step({"kind": PYTHON, "text": code})
        assert seen["failed"]
        expected = ["__main__", [0, 1, 2], 4, 2 * 300 * 2**20 + 2**29, True, True, False, False]
        assert json.loads(seen["text"]) == expected
    if library:
        assert len(set(step(env, "cat drawn").split())) == 2, "forks draw the same numbers"
    assert "MemoryError" in step(env, "x = bytes(2 * 10**9)", PYTHON)
    assert step(env, "1 / 0", PYTHON).endswith("ZeroDivisionError: division by zero\n")


ABANDONED = """
import os, signal, sys
from mleredux_bridge_gymnasium.environment import TaskEnvironment
places = {"runs_dir": sys.argv[1], "data_dir": sys.argv[2], "limits": {"cpus": 0.3, "memory_mb": 256}}
envs = [TaskEnvironment("wine", sandbox="process", **places) for _ in range(3)]
for seed, env in enumerate(envs):
    env.reset(seed=seed)
    env.step({"kind": 0, "text": "echo kept > kept.txt"})
if sys.argv[3] != "0":
    os.kill(os.getpid(), int(sys.argv[3]))
"""


def disks(folder: Path) -> list[str]:
    mounts = Path("/proc/self/mounts").read_text().splitlines() if Path("/proc/self/mounts").exists() else []
    return [line for line in mounts if str(folder) in line] + [str(path) for path in folder.glob("*/.volume*")]


def sockets(store: RunStore) -> list[Path]:
    paths = [socket_path(run_id, store.path / run_id / "output") for run_id in store.ids()]
    return [path.parent for path in paths if path.parent.exists()]


@pytest.mark.parametrize("end", [0, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("following", ["session", "run"])
def test_programs_that_close_no_episode_leave_no_disk_or_socket(tmp_path: Path, end: int, following: str) -> None:
    """Those of an ended program are closed at its exit, and those of a killed one by the next program."""
    runs, data, killed = str(tmp_path / "runs"), str(tmp_path / "data"), end == signal.SIGKILL
    ended = subprocess.run([sys.executable, "-c", ABANDONED, runs, data, str(int(end))], check=False)
    assert ended.returncode == {0: 0, signal.SIGTERM: 128 + signal.SIGTERM, signal.SIGKILL: -signal.SIGKILL}[end]
    store = RunStore(runs)
    assert killed or not disks(store.path)
    assert len(sockets(store)) == (3 if killed else 0)
    assert {row["status"] for row in store.rows()} == {"interrupted" if killed else "cancelled"}
    if following == "session":
        subprocess.run([sys.executable, "-c", ABANDONED, runs, data, "0"], check=True)
    else:
        words = ("run", "wine", "--agent", "dummy", "--sandbox", "process", "--runs-dir", runs, "--data-dir", data)
        subprocess.run([sys.executable, "-m", "mleredux", *words], check=True, capture_output=True)
    assert not disks(store.path) and not sockets(store)
    kept = [path.read_text() for path in store.path.glob("*/output/kept.txt")]
    assert kept == ["kept\n"] * (6 if following == "session" else 3)


RESETTING = """
import sys
from mleredux_bridge_gymnasium.environment import TaskEnvironment
from mleredux_bridge_gymnasium.vector import TaskVectorEnvironment
places = {"runs_dir": sys.argv[1], "data_dir": sys.argv[2], "limits": {"cpus": 0.1, "memory_mb": 256, "grace": 5}}
places["sandbox"], number = sys.argv[3], int(sys.argv[4])
env = TaskVectorEnvironment(number, task="wine", workers=2, **places) if number else TaskEnvironment("wine", **places)
env.reset(seed=0)
print("ready", flush=True)
while True:
    env.reset(seed=1)
"""


@pytest.mark.parametrize(
    ("sandbox", "number", "delay", "how"),
    [
        ("process", 0, 0.0, signal.SIGTERM),
        ("process", 0, 0.2, signal.SIGHUP),
        ("process", 6, 0.4, signal.SIGTERM),
        pytest.param("docker", 0, 0.6, signal.SIGTERM, marks=pytest.mark.docker),
        pytest.param("docker", 6, 0.6, signal.SIGTERM, marks=pytest.mark.docker),
    ],
)
def test_a_program_that_is_ended_while_it_resets_leaves_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, sandbox: str, number: int, delay: float, how: signal.Signals
) -> None:
    """No process, container, slot, disk or socket: the episode of the reset is cancelled like any other."""
    if sandbox == "docker":
        request.getfixturevalue("docker_base_image")
    store, words = RunStore(tmp_path / "runs"), [str(tmp_path / "runs"), str(tmp_path / "data"), sandbox, str(number)]
    with subprocess.Popen([sys.executable, "-c", RESETTING, *words], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None and program.stdout.readline() == "ready\n"
        time.sleep(delay)
        below = psutil.Process(program.pid).children(recursive=True)
        program.send_signal(how)
        assert program.wait(60) == 128 + how
    assert not psutil.wait_procs(below, 10)[1]
    assert {row["status"] for row in store.rows()} == {"cancelled"}
    assert not disks(store.path) and not sockets(store)
    if sandbox == "docker":
        labels = subprocess.check_output(["docker", "ps", "--all", "--format", "{{.Labels}}"], text=True)
        assert not [run_id for run_id in store.ids() if run_id in labels]
