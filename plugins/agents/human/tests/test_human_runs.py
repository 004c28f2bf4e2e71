"""A person works on a task: in a folder, or in a terminal that is closed and opened again; graded at once or later."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import unicodedata
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import mleredux_testing as testing
import pytest
import websocket
from mleredux import Run
from mleredux._core.cli.local import LocalBackend
from mleredux.errors import MlereduxError, NotGranted
from mleredux.models.formats import short_reference
from mleredux.plugin.command import current
from mleredux_agent_human.plugin import is_person
from mleredux_agent_human.start import _request
from mleredux_agentkit.wire import readable
from mleredux_agents import PERSON
from mleredux_support.plans import plan_of

MLEREDUX = (sys.executable, "-m", "mleredux")
PROMPT = r"left\] \w+\$ $"
SUBMIT = 'submit "$MLEREDUX_DATA_DIR/sample_submission.csv"'


class Terminal:
    """A terminal of 80 columns in which a command of mleredux runs."""

    def __init__(self, *words: str) -> None:
        self.pid, self.master = pty.fork()
        if not self.pid:
            os.execv(sys.executable, [*MLEREDUX, *words])
        self.shown = ""

    def wait_for(self, pattern: str, seconds: float = 120) -> None:
        """Wait until the text since the last call ends with, or holds, a pattern; `""`: the end of the command."""
        until = time.monotonic() + seconds
        while not (pattern and re.search(pattern, self.shown)):
            assert time.monotonic() < until, self.shown
            if not readable([self.master], 0.2):
                continue
            try:
                data = os.read(self.master, 1 << 16)
            except OSError:
                data = b""
            if not data:
                assert not pattern, self.shown
                os.waitpid(self.pid, 0)
                return
            self.shown += data.decode("utf-8", "replace")

    def type(self, text: str) -> None:
        """Type a text at the prompt."""
        self.shown = ""
        os.write(self.master, text.encode())

    def close(self) -> None:
        """The window is closed."""
        os.close(self.master)
        os.kill(self.pid, signal.SIGHUP)
        os.waitpid(self.pid, 0)


def command(*words: str, code: int = 0) -> str:
    ended = subprocess.run([*MLEREDUX, *words], capture_output=True, text=True, timeout=120)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout


def ended(home: Path) -> Run:
    (found,) = [Run(path) for path in (home / "runs").iterdir() if path.is_dir()]
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def home(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MLEREDUX_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("MLEREDUX_DATA_ROOT", str(data))
    monkeypatch.setenv("COLUMNS", "80")
    yield tmp_path
    for path in (tmp_path / "runs").glob("*/run.json"):
        if Run(path.parent).alive:
            command("runs", "cancel", path.parent.name)


def test_a_closed_terminal_loses_nothing_and_ctrl_d_ends_the_run(home: Path) -> None:
    first = Terminal("start", "wine", "--name", "ada", "--time-limit", "10m")
    first.wait_for(PROMPT)
    first.type("mkdir -p code; echo fit > code/fit.py; echo $((6 * 7)); clock\n")
    first.wait_for(r"42\r\n0:(10:00|0\d:\d\d) left of 10 minutes\.")
    first.wait_for(PROMPT)
    first.close()
    second = Terminal("start", "--attach", "last")
    second.wait_for(PROMPT)
    second.type("\x04")
    second.wait_for("Nothing has been submitted yet")
    second.wait_for(PROMPT)
    second.type("echo no > bad.csv; submit bad.csv || echo refused\n")
    second.wait_for("lacks the columns.*\r\nrefused")
    second.wait_for(PROMPT)
    second.type(f"{SUBMIT}\n")
    second.wait_for("well-formed")
    second.wait_for(PROMPT)
    second.type("\x04")
    second.wait_for("")
    assert "human:ada on wine" in second.shown and "done" in second.shown
    run = ended(home)
    assert run.spec.agent == "human:ada" and str(run.state) == "done"
    assert run.report is not None and run.report.score is not None
    assert len(run.submissions()) == 2 and (run.output_dir / "code" / "fit.py").is_file()
    assert run.rollout is not None
    steps = [call for step in run.rollout.steps for call in step.tool_calls or ()]
    typed = [call.arguments["command"] for call in steps if call.function_name == "shell"]
    assert typed[0].startswith("mkdir -p code; echo fit") and SUBMIT in typed
    assert [call.function_name for call in steps].count("submit") == 2
    assert not (run.output_dir / ".session").exists()


def test_feedback_can_wait_until_it_is_released(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = json.loads(command("start", "wine", "--feedback", "later", "--detach", "--json"))
    assert record["agent"] == "human" and record["report"] is None
    run = Run(Path(record["path"]))
    assert "is still being worked on" in fails("runs", "release-grades", run.id)
    assert "can't be read" in fails("submit", "nothing.csv", "--run", run.id)
    monkeypatch.chdir(run.output_dir)
    sample = run.path / "task" / "data" / "sample_submission.csv"
    assert command("submit", str(sample)) == "submission.csv is well-formed.\n"
    assert "graded later" in command("finish")
    monkeypatch.chdir(home)
    run = Run(run.path)
    assert run.report is None and str(run.state) == "grading" and not run.alive
    assert "has ended" in fails("start", "--attach", run.id)
    assert command("runs", "release-grades") == "No run is due.\n"
    assert "done" in command("runs", "release-grades", run.id)
    run = Run(run.path)
    assert run.report is not None and run.report.valid_submission
    assert "needs no release" in fails("runs", "release-grades", run.id)


def test_a_run_of_a_person_says_how_to_begin_and_no_server_plans_one(home: Path) -> None:
    asked = {"name": "ada", "sandbox": None, "jupyter": False, "options": ()}
    request = _request("wine", asked | dict.fromkeys(("time_limit", "cpus", "memory_mb", "disk_mb")))
    batch = LocalBackend(current()).create(request)
    (run,) = batch.runs
    assert batch.note == f"{run.id} waits for you: in another terminal, `mleredux human start --attach {run.id}`."
    with pytest.raises(NotGranted, match="a server has no user at a terminal"):
        plan_of(current(), "wine", "human:ada")


def fails(*words: str) -> str:
    told = subprocess.run([*MLEREDUX, *words], capture_output=True, text=True, timeout=600)
    assert told.returncode == 1 and "Traceback" not in told.stderr, told.stderr
    return told.stderr


@pytest.mark.parametrize("given", ["soon", "2020-01-01T00:00"])
def test_a_time_of_feedback_that_is_none_is_refused(given: str, home: Path) -> None:
    told = subprocess.run(
        [*MLEREDUX, "start", "wine", "--feedback", given], capture_output=True, text=True, timeout=600
    )
    assert told.returncode == 2 and given in told.stderr and not (home / "runs").exists()


def execute(kernel: websocket.WebSocket, code: str) -> str:
    """Execute a cell as a notebook does; what it prints, and the name of its error."""
    asked = {
        "msg_id": uuid.uuid4().hex,
        "msg_type": "execute_request",
        "session": "s",
        "username": "",
        "version": "5.3",
    }
    content = {"code": code, "silent": False, "store_history": True}
    kernel.send(
        json.dumps({"header": asked, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"})
    )
    shown = ""
    while True:
        said = json.loads(kernel.recv())
        if said["parent_header"].get("msg_id") != asked["msg_id"] or said["channel"] != "iopub":
            continue
        shown += said["content"].get("text", "") + said["content"].get("ename", "")
        if said["content"].get("execution_state") == "idle":
            return shown


def test_cells_of_a_notebook_are_steps_and_submit(home: Path) -> None:
    record = json.loads(command("start", "wine", "--name", "ada", "--jupyter", "--detach", "--json"))
    run, address = Run(Path(record["path"])), urlsplit(record["jupyter"])
    place, token = f"{address.scheme}://{address.netloc}", parse_qs(address.query)["token"][0]
    assert address.hostname == "127.0.0.1" and address.path == "/lab/tree/work.ipynb"
    assert httpx.get(f"{place}/api/contents").status_code == 403
    allowed = {"Authorization": f"token {token}"}
    first = httpx.get(f"{place}/api/contents/work.ipynb", headers=allowed, timeout=30).json()["content"]["cells"]
    assert "cultivar" in first[0]["source"] and "%submit" in first[0]["source"]
    made = httpx.post(f"{place}/api/kernels", headers=allowed, json={"name": "python3"}, timeout=60).json()
    kernel = websocket.create_connection(
        f"ws://{address.netloc}/api/kernels/{made['id']}/channels", header=allowed, timeout=60
    )
    assert "sample_submission.csv" in execute(kernel, f"{first[1]['source']}\nprint(os.listdir(data))")
    assert "ZeroDivisionError" in execute(kernel, "print('before')\n1 / 0")
    assert "0:0" not in execute(kernel, "%clock") and "well-formed" in execute(
        kernel, '%submit {os.environ["MLEREDUX_DATA_DIR"]}/sample_submission.csv'
    )
    assert record["jupyter"] in command("start", "--attach", run.id)
    execute(kernel, "%finish")
    kernel.close()
    wait_for_end(run)
    run = Run(run.path)
    assert run.report is not None and run.report.valid_submission and run.rollout is not None
    calls = {call.arguments.get("command"): step for step in run.rollout.steps for call in step.tool_calls or ()}
    assert any("submit" in call.function_name for step in run.rollout.steps for call in step.tool_calls or ())
    failed = str(calls["print('before')\n1 / 0"].observation)
    assert "before" in failed and "ZeroDivisionError: division by zero" in failed and "IPython" not in failed
    assert (run.output_dir / "work.ipynb").is_file() and not (run.output_dir / ".session").exists()
    with pytest.raises(httpx.HTTPError):
        httpx.get(place, timeout=5)


def wait_for_end(run: Run, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not Run(run.path).state.final:
        assert time.monotonic() < until
        time.sleep(0.2)


def check_options(sandbox: str) -> dict[str, Any]:
    return {"options": {"commands": f"{SUBMIT}; finish"}, "sandbox": sandbox}


def test_the_agent_conforms(tmp_path: Path) -> None:
    testing.check_agent("human", tmp_path, **check_options("process"))


@pytest.mark.docker
def test_a_person_works_in_a_container(tmp_path: Path, docker_base_image: str) -> None:
    testing.check_agent("human", tmp_path, **check_options("docker"))


@pytest.mark.parametrize("name", ["José", "Jose\u0301", "ada@example.org", "Зоя", "李雷", "b-2.c_3", "a" * 64])
def test_people_have_names_of_any_language(name: str) -> None:
    reference = f"human:{unicodedata.normalize('NFC', name)}"
    found = current().agent(f"human:{name}", {})
    assert found.reference == reference and is_person(reference) and PERSON.fullmatch(reference.removeprefix("human:"))
    assert short_reference(reference) == reference


@pytest.mark.parametrize("name", ["", "Ada Lovelace", "../ada", "a/b", "-x", "@x", "a\n", "a" * 65, "a:b"])
def test_other_names_are_refused_in_one_true_sentence(name: str) -> None:
    with pytest.raises(MlereduxError, match=r"is not a valid user name\. Use at most 64 letters, digits"):
        current().agent(f"human:{name}")
