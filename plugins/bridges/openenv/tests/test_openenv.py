"""Tasks in OpenEnv's own environment: its client gets our score as reward, and its validator accepts the server."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import mleredux
import psutil
import pytest
from mleredux import Run
from mleredux.plugin.artifact import RunStore
from mleredux.plugin.command import current
from mleredux_agents import rule_of, solution_of
from mleredux_testing.launches import wait_for
from mleredux_testing.pytest_plugin import validator

WORK = r"""
import json, sys
from openenv.core.generic_client import GenericEnvClient

told = {}
with GenericEnvClient(base_url=sys.argv[1], message_timeout_s=300).sync() as client:
    copy = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv'
    for name, command in (("valid", copy), ("invalid", "echo id > submission.csv")):
        steps = [client.reset(seed=3), client.step({"kind": "shell", "text": command})]
        if name == "valid":
            steps.append(client.step({"kind": "python", "text": "import sys; print(6 * 7); sys.exit(3)"}))
        steps.append(client.step({"kind": "submit"}))
        told[name] = [{"reward": s.reward, "done": s.done, **s.observation} for s in steps]
        told[name][-1]["run"] = client.state()["episode_id"]
    errors = []
    for do in (lambda: client.step({"kind": "shell", "text": "ls"}), lambda: client.reset(task="digits")):
        try:
            do()
        except Exception as error:
            errors.append(str(error))
    told["errors"] = errors
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def programs() -> Path:
    return validator("openenv") / "bin"


def asked(command: list[str | Path], programs: Path) -> Any:
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


@contextmanager
def serving(programs: Path, home: Path, *tasks: str, **env: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server's URL and its process."""
    places = ["--runs-dir", str(home / "runs"), "--data-dir", str(home / "data"), "--sandbox", "process"]
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", **env}
    words = [programs / "mleredux", "openenv", *tasks, "--port", "0", *places]
    with (
        (home / "server.log").open("w") as log,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as server,
    ):
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+:\d+", server.stdout.readline())
            assert address is not None
            yield address[0], server
        finally:
            server.terminate()


def _refuses_pages_of_other_sites(url: str) -> None:
    place = urlsplit(url)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for path, headers, expected in (
        ("/reset", {"Origin": "http://other.example"}, 403),
        ("/reset", {"Origin": "http://other.example", "Host": "other.example"}, 400),
        ("/ws", {"Origin": "http://other.example", **upgrade, **key}, 403),
        ("/ws", {"Origin": f"http://{place.netloc}", **upgrade, **key}, 101),
    ):
        connection = http.client.HTTPConnection(place.netloc, timeout=60)
        connection.request("GET" if path == "/ws" else "POST", path, None if path == "/ws" else b"{}", headers)
        assert connection.getresponse().status == expected, (path, headers)
        connection.close()


def test_its_validator_accepts_the_manifest(programs: Path) -> None:
    package = Path(__file__).parents[1]
    report = asked([programs / "openenv", "validate", package, "--level", "static", "--skip-build", "--json"], programs)
    assert report["verdict"] == "pass"


def test_its_client_gets_our_score_and_its_validator_accepts_the_server(programs: Path, tmp_path: Path) -> None:
    with serving(programs, tmp_path, "wine") as (url, _):
        _refuses_pages_of_other_sites(url)
        report = asked([programs / "openenv", "validate", "--url", url, "--json"], programs)
        told = asked([programs / "python", "-c", WORK, url], programs)
    assert report["passed"], report
    task, _, ran, valid = told["valid"]
    sample = tmp_path / "data" / "wine" / "prepared" / "public" / "sample_submission.csv"
    report = mleredux.grade(sample, "wine", data_dir=tmp_path / "data")
    assert valid["reward"] == rule_of("standing").of_report(report) and valid["done"] and valid["valid"]
    assert (ran["text"], ran["failed"], ran["done"], ran["reward"]) == ("42\n", True, False, None)
    invalid = told["invalid"][-1]
    assert (invalid["reward"], invalid["done"], invalid["valid"]) == (0, True, False) and invalid["message"]
    answers = (sample.parents[1] / "private" / "answers.csv").read_text().splitlines()[1:6]
    shown = json.dumps(told["valid"][:-1])
    assert "wine" in task["text"] and str(report.score) not in shown and not any(row in shown for row in answers)
    assert "There is no open episode." in told["errors"][0] and "'digits' is not served here" in told["errors"][1]
    run = Run(tmp_path / "runs" / valid["run"])
    assert (run.spec.agent, run.spec.seed, str(run.state)) == ("openenv", 3, "done")
    assert run.report is not None and run.report.verdict.status == "score given"
    assert "revealed as a reward" in (run.report.verdict.why or "")


KINDS = (
    "wine", "synthetic-micro-public-3", "wine+planted-public-3", "leakage@synthetic-micro-public-3",
    "eda+planted-public-3@wine", "breast-cancer-model", "wine-tasting",
)  # fmt: skip
"""Tasks of each kind."""
CONTROLS = r"""
import json, sys
from openenv.core.generic_client import GenericEnvClient

solutions, rewards = json.load(sys.stdin), {}
with GenericEnvClient(base_url=sys.argv[1], message_timeout_s=300).sync() as client:
    for task, (file, content) in solutions.items():
        write = f"import base64, pathlib; pathlib.Path({file!r}).write_bytes(base64.b64decode({content!r}))"
        for name, actions in (("gold", [{"kind": "python", "text": write}]), ("noop", [])):
            client.reset(task=task)
            *_, ended = [client.step(action) for action in (*actions, {"kind": "submit"})]
            rewards.setdefault(task, {})[name] = ended.reward
print(json.dumps(rewards))
"""


def test_the_solution_of_every_kind_of_task_has_the_best_reward_and_nothing_none(
    programs: Path, tmp_path: Path
) -> None:
    """Through OpenEnv's own client; its validator accepts a server with all kinds."""
    solutions = {}
    for task in map(current().task, KINDS):
        content = solution_of(task, mleredux.prepare(task.id, data_dir=tmp_path / "data").public.parent)
        assert content is not None
        if task.submission.file.endswith(".csv"):  # a copy of the answers is tainted, and has the reward 0
            header, *lines = content.splitlines(keepends=True)
            content = header + b"".join(reversed(lines))
        solutions[task.id] = task.submission.file, base64.b64encode(content).decode()
    with serving(programs, tmp_path, *KINDS) as (url, _):
        words = [programs / "python", "-c", CONTROLS, url]
        rewards = subprocess.run(words, input=json.dumps(solutions), capture_output=True, text=True, check=True)
        report = asked([programs / "openenv", "validate", "--url", url, "--json"], programs)
    assert json.loads(rewards.stdout) == {task: {"gold": 1, "noop": 0} for task in KINDS} and report["passed"], report


PLAYER = r"""
import sys
from openenv.core.generic_client import GenericEnvClient

with GenericEnvClient(base_url=sys.argv[1], message_timeout_s=300).sync() as client:
    client.reset(seed=5)
    client.step({"kind": "shell", "text": "echo kept > kept.txt"})
    client.step({"kind": "shell", "text": sys.argv[2]})
"""


def family(number: int) -> list[tuple[str, psutil.Process]]:
    """The names of the processes below a process."""
    names = []
    for process in psutil.Process(number).children(True):
        with suppress(psutil.Error):  # it ended in the meantime
            names.append((process.name(), process))
    return names


STUBBORN = "setsid sh -c 'trap \"\" TERM INT HUP; sleep 600' & kill -STOP $PPID; sleep 600"


@pytest.mark.parametrize(
    ("killed", "how", "command"),
    [
        ("server", signal.SIGKILL, "sleep 600"),
        ("server", signal.SIGKILL, STUBBORN),
        ("server", signal.SIGTERM, STUBBORN),
        ("server", signal.SIGHUP, "sleep 600"),
        ("client", signal.SIGKILL, "setsid sleep 600 & sleep 5"),
    ],
    ids=["server", "server whose agent ignores signals", "ended server", "server without terminal", "client"],
)
def test_an_episode_whose_server_or_client_is_killed_loses_and_leaves_nothing(
    programs: Path, tmp_path: Path, killed: str, how: signal.Signals, command: str
) -> None:
    """No process, and after the next run no file, mount or socket; what the agent wrote and the events are kept.

    A command whose client was killed ends first: only then does OpenEnv notice. A server that can still act ends the
    command, cancels the run and removes everything itself.
    """
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    store = RunStore(tmp_path / "runs")
    played = [programs / "python", "-c", PLAYER]
    with (
        serving(programs, tmp_path, "wine", TMPDIR=str(temporary)) as (url, server),
        subprocess.Popen([*played, url, command], stderr=subprocess.DEVNULL) as client,
    ):
        assert wait_for(lambda: "sleep" in [name for name, _ in family(server.pid)], 300)
        below = [process for name, process in family(server.pid) if killed == "server" or name == "sleep"]
        (server if killed == "server" else client).send_signal(how)
        if how is not signal.SIGKILL:
            server.wait(120)
            assert {row["status"] for row in store.rows()} == {"cancelled"} and not list(temporary.iterdir())
        if killed == "client":
            assert wait_for(lambda: {row["status"] for row in store.rows()} == {"cancelled"}, 300)
            answers = asked([programs / "python", "-c", WORK, url], programs)
            assert answers["valid"][-1]["valid"], "the server serves others"
        client.kill()
    _, alive = psutil.wait_procs(below, 60)
    assert not alive and "Traceback" not in (tmp_path / "server.log").read_text()
    (number,) = [run_id for run_id in store.ids() if Run(store.path / run_id).spec.seed == 5]
    run = Run(store.path / number)
    assert (run.output_dir / "kept.txt").read_text() == "kept\n"
    events = [event.seq for event in run.events()]
    assert events == list(range(events[0], events[0] + len(events)))
    words = ("run", "wine", "--agent", "dummy", "--sandbox", "process", "--runs-dir", str(store.path))
    environment = {**os.environ, "TMPDIR": str(temporary)}
    data = ("--data-dir", str(tmp_path / "data"))
    subprocess.run([sys.executable, "-m", "mleredux", *words, *data], check=True, capture_output=True, env=environment)
    status = {row["id"]: row["status"] for row in store.rows()}[number]
    assert status == ("interrupted" if killed == "server" and how is signal.SIGKILL else "cancelled")
    assert not list(temporary.iterdir())
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
    assert not [path for path in (*Path("/dev/shm").iterdir(), *Path("/tmp").iterdir()) if number in path.name]
