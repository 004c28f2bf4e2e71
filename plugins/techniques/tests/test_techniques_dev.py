"""`TASK+dev`: rows held back from the training data, on which an agent can get scores while it works."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from mleredux._core.data.debug_sample import variant_name
from mleredux._core.store import Run
from mleredux.errors import NotApplicable
from mleredux_support.server import ServerProcess
from mleredux_testing.launches import wait_for

PLANTED = [f"wine+planted-public-{seed}" for seed in range(6)]
TASKS = ("wine", "diabetes", "breast-cancer", "synthetic-easy-5", *PLANTED)
SCRIPT = """
import json, os, pathlib, urllib.error, urllib.request
data, output = (pathlib.Path(os.environ[f"MLEREDUX_{name}_DIR"]) for name in ("DATA", "OUTPUT"))
def score(body):
    request = urllib.request.Request(os.environ["MLEREDUX_SCORE_URL"], body, {"Content-Type": "text/csv"})
    try:
        return json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError as error:
        return error.code
sample = (data / "dev" / "sample_submission.csv").read_bytes()
uniform = sample.decode().splitlines()
certain = "\\n".join([uniform[0], *(line.split(",")[0] + ",0.98,0.01,0.01" for line in uniform[1:])]).encode()
test = (data / "sample_submission.csv").read_bytes()
answers = [score(body) for body in (sample, b"", b"a,b\\n1,2\\n", b"\\x00" * 99, test, certain, sample, sample)]
(output / "answers.json").write_text(json.dumps(answers))
(output / "submission.csv").write_bytes(test)
"""

PATIENT = """
import json, os, pathlib, threading, time, urllib.request
data, output = (pathlib.Path(os.environ[f"MLEREDUX_{name}_DIR"]) for name in ("DATA", "OUTPUT"))
sample, url = (data / "dev" / "sample_submission.csv").read_bytes(), os.environ["MLEREDUX_SCORE_URL"]
answers = []
def score():
    while True:
        try:
            return answers.append(json.load(urllib.request.urlopen(urllib.request.Request(url, sample))))
        except OSError:
            time.sleep(0.1)  # while the program is away
score()
(output / "pid").write_text(str(os.getpid()))
while not pathlib.Path(RELEASE).exists():
    time.sleep(0.05)
threads = [threading.Thread(target=score) for _ in range(5)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
(output / "answers.json").write_text(json.dumps([sample.decode(), answers]))
(output / "submission.csv").write_bytes((data / "sample_submission.csv").read_bytes())
"""

PLUGIN = """
from mleredux.hookspecs import hookimpl
from mleredux.models import Agent, Limits
mleredux_contract = 2
@hookimpl
def mleredux_register_agents():
    limits = Limits(time_limit=600, cpus=0.5, memory_mb=512, disk_mb=100)
    return [Agent(id="patient", title="Waits", command=("python", "-c", CODE), limits=limits)]
"""


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", TASKS)
def test_the_rows_are_divided_and_the_test_stays(bench, prepared, name):
    whole, dev = prepared(name), prepared(variant_name(name, "dev"))
    task = bench.task(name)
    row, targets = task.submission.id_columns[0], set(task.submission.target_columns)
    before, kept, held = (
        {line[row]: line for line in table(path)}
        for path in (whole.public / "train.csv", dev.public / "train.csv", dev.public / "dev" / "test.csv")
    )
    assert kept and held and not kept.keys() & held.keys()
    assert kept.keys() | held.keys() == before.keys(), "every training row is in one of the parts"
    assert 0.1 < len(held) / len(before) < 0.35
    lacking = set(table(dev.public / "train.csv")[0]) - set(table(dev.public / "dev" / "test.csv")[0])
    assert lacking and (targets & lacking or len(lacking) == 1), "the held-back rows have no targets"
    sample = [line[row] for line in table(dev.public / "dev" / "sample_submission.csv")]
    assert sample == [line[row] for line in table(dev.public / "dev" / "test.csv")]
    for kind, file in ((whole.private, task.answers), (whole.public, "sample_submission.csv")):
        other = dev.private if kind == whole.private else dev.public
        assert (other / file).read_bytes() == (kind / file).read_bytes(), "the test set and its answers are the same"
    assert [line[row] for line in table(dev.public / "test.csv")] == [
        line[row] for line in table(whole.public / "test.csv")
    ]
    assert not {file.name for file in dev.public.rglob("*")} - {
        *("dev", "train.csv", "test.csv", "sample_submission.csv")
    }


def test_medals_are_those_of_the_task(bench):
    whole, dev = bench.task("wine"), bench.task("wine+dev")
    assert (dev.thresholds, dev.leaderboard, dev.metric) == (whole.thresholds, whole.leaderboard, whole.metric)
    assert dev.version != whole.version and "held" not in (whole.note or "") and "could get scores" in dev.note


@pytest.mark.parametrize("name", ["wine-service", "digits-code"])
def test_tasks_without_two_tables_have_none(bench, prepared, name):
    with pytest.raises(NotApplicable):
        prepared(f"{name}+dev")


def command(home: Path, *arguments: str) -> list[str]:
    folders = ["--runs-dir", str(home / "runs"), "--data-dir", str(home / "data"), "--json"]
    return [sys.executable, "-m", "mleredux", "run", *arguments, *folders]


def run(home: Path, *arguments: str) -> dict[str, Any]:
    (home / "searcher.py").write_text(SCRIPT)
    words = arguments if "--resume" in arguments else (*arguments, "--agent", str(home / "searcher.py"))
    done = subprocess.run(command(home, *words), capture_output=True, text=True, timeout=300)
    assert done.stdout, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record


@pytest.mark.parametrize("sandbox", ["process", pytest.param("docker", marks=pytest.mark.docker)])
def test_scores_are_counted_limited_and_in_the_ledger(tmp_path, sandbox):
    record = run(tmp_path, "wine", "--dev-score", "2", "--sandbox", sandbox)
    assert (record["status"], record["task"]) == ("done", "wine+dev"), record
    path = Path(record["path"])
    answers = json.loads((path / "output" / "answers.json").read_text())
    uniform, empty, columns, damaged, others, certain, *late = answers
    assert uniform["score"] == pytest.approx(1.0986, abs=1e-3) and uniform["left"] == 1
    assert empty["score"] is None and "file" in empty["message"]
    for refused in (columns, damaged, others):
        assert refused["score"] is None and refused["left"] == 1, "only scores count"
    assert certain["score"] > 2 and certain["left"] == 0
    assert {answer["message"] for answer in late} == {"This run has used all of its development scores."}
    assert [answer["left"] for answer in late] == [0, 0]
    ledger = record["report"]["ledger"]
    assert ledger["dev_scores"] == 2 and 20 < ledger["dev_bits"] < 60
    events = [event.data["score"] for event in Run(path).events() if event.type == "dev_score"]
    assert events == [uniform["score"], certain["score"]]
    assert "score.sh" in (path / "task" / "instructions.md").read_text()
    assert "Scores on held-out rows" in (path / "report.html").read_text()
    reported = json.dumps(record["report"])
    assert "could get scores" in reported, "every report says how the result came about"


def test_without_the_option_there_are_no_scores(tmp_path):
    record = run(tmp_path, "wine+dev")
    answers = json.loads((Path(record["path"]) / "output" / "answers.json").read_text())
    assert set(answers) == {404}
    assert record["report"]["ledger"]["dev_scores"] == 0
    assert not (Path(record["path"]) / "task" / "score.sh").exists()


@pytest.mark.parametrize("ended", ["program", "program and agent"])
def test_a_resumed_run_counts_each_score_once(tmp_path, ended):
    (tmp_path / "patient.py").write_text(PATIENT.replace("RELEASE", repr(str(tmp_path / "go"))))
    words = ("wine", "--dev-score", "3", "--sandbox", "process", "--agent", str(tmp_path / "patient.py"))
    with subprocess.Popen(command(tmp_path, *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        runs = tmp_path / "runs"
        [noted] = wait_for(lambda: [path for path in runs.glob("*/output/pid") if path.read_text()], 120)
        program.kill()
    if ended == "program and agent":
        os.kill(int(noted.read_text()), signal.SIGKILL)
    (tmp_path / "go").touch()
    record = run(tmp_path, "--resume", str(noted.parents[1]))
    sample, answers = json.loads((Path(record["path"]) / "output" / "answers.json").read_text())
    given = [answer["left"] for answer in answers if answer["score"] is not None]
    assert sorted(given) == ([0, 1, 2] if ended == "program" else [0, 1]), "concurrent requests are counted in turn"
    assert {answer["left"] for answer in answers if answer["score"] is None} == {0}
    ledger, whole = record["report"]["ledger"], [event.type for event in Run(Path(record["path"])).events()]
    assert (record["status"], ledger["dev_scores"], whole.count("dev_score")) == ("done", 3, 3), record
    [held] = (tmp_path / "data").rglob("dev/sample_submission.csv")
    assert sample == held.read_text(), "the held-back rows stay the same"


@pytest.mark.parametrize(
    ("how", "ended"), [("stop", ()), ("kill", ()), ("kill", ("worker",)), ("kill", ("worker", "agent"))]
)
def test_a_restarted_server_counts_each_score_once(tmp_path: Path, how: str, ended: tuple[str, ...]) -> None:
    """Five requests are sent during the outage, at once; the rows stay the same, and code never sees their answers."""
    code = PATIENT.replace("RELEASE", repr(str(tmp_path / "go")))
    (tmp_path / "waiting.py").write_text(f"CODE = {code!r}\n{PLUGIN}")
    runs, env = tmp_path / "runs", {"MLEREDUX_PLUGINS": str(tmp_path / "waiting.py")}
    options = ("--data-dir", str(tmp_path / "data"), "--workers", "1")
    body = {"task": "wine+dev", "agent": "patient", "sandbox": "process", "limits": {"dev_scores": 3}}
    with ServerProcess(runs, *options, env=env) as server:
        client = httpx.Client(headers={"Authorization": f"Bearer {server.token}"}, timeout=60)
        answer = client.post(f"{server.url}/v1/runs", json=body)
        assert answer.status_code == 201, answer.text
        name = answer.json()["id"]
        [noted] = wait_for(lambda: [path for path in runs.glob("*/output/pid") if path.read_text()], 180)
        processes = {"agent": psutil.Process(int(noted.read_text()))}
        above = [each for each in processes["agent"].parents() if f"{runs}" in " ".join(each.cmdline())]
        processes["worker"] = next(each for each in above if "worker" in " ".join(each.cmdline()))
        getattr(server, how)()
        for process in ended:
            processes[process].kill()
        (tmp_path / "go").touch()
        server.start()
        path = f"/v1/runs/{name}"
        shown = wait_for(
            lambda: (run := client.get(server.url + path).json())["status"] in ("done", "failed") and run, 240
        )
    assert (shown["status"], shown["task"]) == ("done", "wine+dev"), shown
    run = Run(runs / name)
    sample, answers = json.loads((run.output_dir / "answers.json").read_text())
    again = "agent" in ended
    given = [each["left"] for each in answers if each["score"] is not None]
    assert sorted(given) == ([0, 1] if again else [0, 1, 2])
    assert len({each["score"] for each in answers} - {None}) == 1  # threads note their answers in any order
    assert {each["left"] for each in answers if each["score"] is None} == {0}
    assert run.report is not None and "could get scores" in (run.report.note or "")
    assert (run.report.ledger.dev_scores, [event.type for event in run.events()].count("dev_score")) == (3, 3)
    assert 30 < run.report.ledger.dev_bits < 90
    [held] = (tmp_path / "data").rglob("dev/sample_submission.csv")
    assert sample == held.read_text()
