"""Tasks whose submission is a program: small programs solve each; hostile ones get one sentence, and reach nothing."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import zipfile
from pathlib import Path

import pytest
from mleredux._core.data import DataStore, Prepared
from mleredux._core.plugins import current
from mleredux._core.stages.grade import grade
from mleredux._core.stages.prepare import prepare
from mleredux._core.submissions.endpoint import ValidationEndpoint, share_of
from mleredux._core.submissions.schema import read_schema
from mleredux._core.submissions.validation import validate
from mleredux.errors import InvalidSubmission
from mleredux.models import Limits, Report, Task, Verdict
from mleredux_competition_starter import PROGRAMS
from mleredux_programs.execute import check_program, score_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")

CODE = """
import sys
import numpy as np
train, test = (np.loadtxt(name, delimiter=",", skiprows=1, dtype=int) for name in ("train.csv", sys.argv[1]))
known, asked = train[:, 1:-1], test[:, 1:]
far = (known**2).sum(axis=1) - 2 * asked @ known.T
made = np.column_stack([test[:, 0], train[far.argmin(axis=1), -1]])
np.savetxt(sys.argv[2], made, fmt="%d", delimiter=",", header="id,digit", comments="")
"""
MODEL = """
import json
class Model:
    def __init__(self, weights):
        self.weights = weights
    def predict(self, rows):
        return [{"malignant": sum(w * float(row[name]) for name, w in self.weights.items())} for row in rows]
def load(folder):
    return Model(json.load(open(folder + "/weights.json")))
"""
WEIGHTS = {"worst_radius": 1.0, "worst_concave_points": 60.0}
SERVICE = """
import asyncio, csv, json, sys
rows = list(csv.DictReader(open("train.csv")))
names = ("alcohol", "flavanoids", "color_intensity", "proline")
scale = {name: max(float(row[name]) for row in rows) for name in names}
def near(asked):
    def far(row):
        return sum(((float(row[name]) - float(asked[name])) / scale[name]) ** 2 for name in names)
    return min(rows, key=far)["cultivar"]
async def answer(reader, writer):
    head = (await reader.readuntil(b"\\r\\n\\r\\n")).decode().lower()
    length = int(head.partition("content-length:")[2].split()[0])
    body = json.dumps({"cultivar": near(json.loads(await reader.readexactly(length)))})
    writer.write(f"HTTP/1.0 200 OK\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}".encode())
    writer.close()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]), backlog=128)
    await server.serve_forever()
asyncio.run(main())
"""
POLICY = """
from statistics import fmean
import csv
rows = list(csv.DictReader(open("cellar.csv")))
names = ("flavanoids", "color_intensity", "proline")
scale = {name: max(float(row[name]) for row in rows) for name in names}
def act(observation):
    for name in names:
        if name not in observation:
            return name
    def far(row):
        return sum(((float(row[name]) - observation[name]) / scale[name]) ** 2 for name in names)
    return min(rows, key=far)["cultivar"]
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Task, Prepared]]:
    store, catalogue = DataStore(tmp_path_factory.mktemp("data")), current()
    return {name: (catalogue.task(name), prepare(catalogue.task(name), catalogue, store)) for name in PROGRAMS}


def submit(data: dict[str, tuple[Task, Prepared]], name: str, content: str | bytes, folder: Path) -> Report:
    task, prepared = data[name]
    path = folder / task.submission.file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return grade(task, path, prepared.private, current())


def archive(**files: str) -> bytes:
    with zipfile.ZipFile(made := io.BytesIO(), "w") as packed:
        for name, text in files.items():
            packed.writestr(name.replace("_", "."), text)
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "program", "least"),
    [
        ("digits-code", CODE, 0.97),
        ("breast-cancer-model", archive(main_py=MODEL, weights_json=json.dumps(WEIGHTS)), 0.97),
        ("wine-service", SERVICE, 0.85),
        ("wine-tasting", POLICY, 0.75),
    ],
)
def test_a_small_program_solves_the_task_and_the_sample_does_not(
    name: str, program: str | bytes, least: float, data: dict[str, tuple[Task, Prepared]], tmp_path: Path
) -> None:
    task, prepared = data[name]
    if name == "wine-service":  # whose deadline a slow machine may miss
        path = tmp_path / "submission.py"
        path.write_text(str(program))
        found = score_program(changed(data, name, deadline=30), current().grader("accuracy"), path, prepared.private)
        told = found.details["service"]
        assert found.value > least and told["in_time"] == told["requests"] == 400
        assert 0 < told["p50_ms"] <= told["p95_ms"] <= told["p99_ms"]
    else:
        report = submit(data, name, program, tmp_path)
        assert report.valid_submission and report.score is not None, report.message
        assert report.score > least
    verdict = validate(read_schema(prepared.schema), tmp_path / task.submission.file)
    assert verdict.valid, verdict.message
    sample = grade(task, prepared.public / (task.submission.sample or ""), prepared.private, current())
    assert sample.score is not None and sample.score <= 0.5


HOSTILE = {
    "reads files": (
        "import os, sys, sklearn\n"
        # The interpreter and its packages may lie there, and the folders on the way to them.
        "needed = [f'{path}/' for path in (sys.prefix, sys.base_prefix, *sys.path)]\n"
        "for top in ('/etc', '/proc', '/run', '/sys', '/tmp', '/var'):\n"
        "    for folder, _, files in os.walk(top):\n"
        "        if not f'{folder}/'.startswith(tuple(needed)):\n"
        "            assert not files and any(path.startswith(f'{folder}/') for path in needed), folder\n"
        "assert not os.listdir(os.path.dirname(sklearn.__file__) + '/datasets/data')\n"
        "try: import mleredux\nexcept ImportError: pass\nelse: print(mleredux.__version__)\n"
        "from sklearn.datasets import load_digits; load_digits()",
        "submission.py ended with an error on the private inputs.",
        "FileNotFoundError",
    ),
    "prints forged scores": (
        "print('{\"score\": {\"value\": 1.0}}'); open('report.json', 'w').write('{\"score\": 1}')",
        "submission.py wrote no predictions.csv on the private inputs.",
        "wrote no predictions.csv",
    ),
    "leaks inputs": (
        "import sys; raise SystemExit('inputs: ' + open(sys.argv[1]).read())",
        "submission.py ended with an error on the private inputs.",
        "ended with exit code 1 on the sample inputs: ",
    ),
    "writes inputs as predictions": (
        "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])",
        "The predictions of submission.py for the private inputs are not valid. "
        "`mleredux validate` shows what is wrong.",
        "The submission lacks the column 'digit'",
    ),
    "fills the disk": (
        "while True: open('full', 'ab').write(bytes(1 << 24))",
        "submission.py ended with an error on the private inputs.",
        "No space left on device",
    ),
    "forks": (
        "import os\nwhile True:\n    if os.fork() == 0:\n        import time; time.sleep(600)",
        "submission.py ended with an error on the private inputs.",
        "Resource temporarily unavailable",
    ),
    "takes memory in many processes": (
        "import os, time\nfor _ in range(3): os.fork()\nheld = b'1' * (200 << 20)\ntime.sleep(600)",
        "submission.py used more than 1,024 MB of memory on the private inputs.",
        "used more than 1,024 MB of memory",
    ),
    "takes shared memory": (
        "import mmap, time\nheld = mmap.mmap(-1, 2 << 30)\n"
        "for place in range(0, 2 << 30, 4096): held[place] = 1\ntime.sleep(600)",
        "submission.py used more than 1,024 MB of memory on the private inputs.",
        "used more than 1,024 MB of memory",
    ),
    "takes memory in children of threads": (
        "import os, threading, time\n"
        "def work():\n    if os.fork() == 0:\n        held = b'1' * (400 << 20)\n    time.sleep(600)\n"
        "for _ in range(4): threading.Thread(target=work).start()\ntime.sleep(600)",
        "submission.py used more than 1,024 MB of memory on the private inputs.",
        "used more than 1,024 MB of memory",
    ),
    "kills its group": (
        "import os; os.kill(0, 9)",
        "submission.py ended with an error on the private inputs.",
        "ended with exit code 137 on the sample inputs",
    ),
    "asks for namespaces": (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "assert libc.unshare(0x10000000) == -1 and ctypes.get_errno() == 1\nos.memfd_create('held')",
        "submission.py ended with an error on the private inputs.",
        "Operation not permitted",
    ),
    "links its predictions": (
        "import os, sys; os.symlink(sys.executable, sys.argv[2])",
        "submission.py wrote no predictions.csv on the private inputs.",
        "wrote no predictions.csv",
    ),
    "reaches the network": (
        "import socket; socket.create_connection(('1.1.1.1', 53), 3)",
        "submission.py ended with an error on the private inputs.",
        "Network is unreachable",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_predictor_gets_one_sentence(
    what: str, data: dict[str, tuple[Task, Prepared]], tmp_path: Path
) -> None:
    program, graded, checked = HOSTILE[what]
    found = submit(data, "digits-code", program, tmp_path)
    assert (found.score, found.message) == (None, graded)
    verdict = validate(read_schema(data["digits-code"][1].schema), tmp_path / "submission.py")
    assert not verdict.valid and checked in verdict.message


def changed(data: dict[str, tuple[Task, Prepared]], name: str, **limits: float) -> Task:
    task = data[name][0]
    execution = task.submission.execution
    assert execution is not None
    form = task.submission.model_copy(update={"execution": execution.model_copy(update=limits)})
    return task.model_copy(update={"submission": form})


@pytest.mark.parametrize("name", ["digits-code", "wine-service", "wine-tasting"])
def test_a_program_that_hangs_is_stopped_when_its_time_is_over(
    name: str, data: dict[str, tuple[Task, Prepared]], tmp_path: Path
) -> None:
    path = tmp_path / "submission.py"
    path.write_text("import time\ntime.sleep(600)")
    with path.open("rb") as file, pytest.raises(InvalidSubmission) as told:
        check_program(data[name][0], file, data[name][1].public, 1.0)
    assert str(told.value) == "submission.py took longer than 1 seconds on the sample inputs."


def test_an_archive_that_is_too_large_or_none_is_refused(
    data: dict[str, tuple[Task, Prepared]], tmp_path: Path
) -> None:
    import random

    large = archive(main_py=MODEL, weights_json=json.dumps([random.Random(0).random() for _ in range(10_000)]))
    assert len(large) > 1 << 16
    found = submit(data, "breast-cancer-model", large, tmp_path)
    assert found.message == "submission.zip is larger than 0.0625 MiB."
    found = submit(data, "breast-cancer-model", "no archive", tmp_path)
    assert found.message == "submission.zip ended with an error on the private inputs."
    with zipfile.ZipFile(bomb := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("main.py", MODEL)
        packed.writestr("weights.json", bytes(40 << 20))
    task = changed(data, "breast-cancer-model", disk_mb=16)
    (tmp_path / "submission.zip").write_bytes(bomb.getvalue())
    with (tmp_path / "submission.zip").open("rb") as file, pytest.raises(InvalidSubmission, match="exit code 1 on"):
        check_program(task, file, data["breast-cancer-model"][1].public, 60.0)


def test_answers_that_differ_or_come_late_count_as_wrong(
    data: dict[str, tuple[Task, Prepared]], tmp_path: Path
) -> None:
    task, prepared = data["wine-service"]
    path = tmp_path / "submission.py"
    unsteady = SERVICE.replace(
        "near(json", "['cultivar_1', 'cultivar_2'][__import__('random').random() < 0.5]  # (json"
    )
    path.write_text(unsteady.replace("  # (json.loads(await reader.readexactly(length)))})", "})"))
    grader = current().grader("accuracy")
    assert score_program(task, grader, path, prepared.private).value < 0.1
    path.write_text(
        SERVICE.replace(
            "async def answer(reader, writer):",
            "COUNT = [0]\nasync def answer(reader, writer):\n"
            "    COUNT[0] += 1\n    if COUNT[0] > 100: await asyncio.sleep(60)",
        )
    )
    hasty = changed(data, "wine-service", deadline=0.5, requests=106)
    found = score_program(hasty, grader, path, prepared.private)
    assert found.details["service"]["in_time"] < 106 and found.value < 1.0


def test_a_policy_that_forges_its_actions_is_refused(data: dict[str, tuple[Task, Prepared]], tmp_path: Path) -> None:
    many = "import os, sys\nos.write(int(sys.argv[-1]), b'\"cultivar_1\"\\n' * 53)\ndef act(seen): raise SystemExit(3)"
    found = submit(data, "wine-tasting", many, tmp_path)
    assert found.score is None or found.score < 0.5
    found = submit(data, "wine-tasting", "def act(observation): return 'reward 100'", tmp_path)
    assert found.message == "submission.py chose an action that is not valid on the private inputs."
    found = submit(data, "wine-tasting", "def act(observation): return [[" * 9, tmp_path)
    assert found.message == "submission.py ended with an error on the private inputs."


def test_what_the_grader_refuses_validation_refuses_too(data: dict[str, tuple[Task, Prepared]], tmp_path: Path) -> None:
    fraction = CODE.replace('made, fmt="%d"', 'made + [0, 0.5], fmt=["%d", "%.1f"]')
    found = submit(data, "digits-code", fraction, tmp_path)
    assert found.score is None and "for the private inputs are not valid" in found.message
    verdict = validate(read_schema(data["digits-code"][1].schema), tmp_path / "submission.py")
    assert not verdict.valid and "row 1 is a fraction" in verdict.message


SPIN = """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(4):
    os.fork()
try: os.sched_setaffinity(0, range(64))
except OSError: pass
while True: pass
"""


def test_validations_compute_within_the_runs_share(data: dict[str, tuple[Task, Prepared]], tmp_path: Path) -> None:
    """Outside the agent's limits they take no more CPU time than that, by however many processes of a program."""
    import threading
    import time

    import psutil

    share = share_of(Limits(time_limit=20, cpus=2.0))
    output, verdicts = tmp_path / "output", list[Verdict]()
    output.mkdir()
    (output / "submission.py").write_text(SPIN)
    schema = read_schema(data["digits-code"][1].schema)
    endpoint = ValidationEndpoint("run", schema, output, verdicts.append, lambda: 60.0, share=share)
    seen: dict[int, float] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    if "runner.py" in process.cmdline():
                        seen[process.pid] = sum(process.cpu_times()[:2])

    watching = threading.Thread(target=watch)
    watching.start()
    begun = time.monotonic()
    for _ in range(6):
        endpoint.answer(None)
    ended.set()
    watching.join()
    assert 0 < len(verdicts) < 6
    assert "share of time" in endpoint.answer(None).message
    assert sum(verdict.seconds for verdict in verdicts) < share + 5
    assert 0 < sum(seen.values()) < share + 1
    assert time.monotonic() - begun < 120


def test_a_validation_that_costs_little_leaves_room_for_many(
    data: dict[str, tuple[Task, Prepared]], tmp_path: Path
) -> None:
    task, prepared = data["digits-code"]
    output = tmp_path / "output"
    output.mkdir()
    (output / task.submission.file).write_text(CODE)
    share = share_of(Limits(time_limit=600, cpus=1.0))
    endpoint = ValidationEndpoint(
        "run", read_schema(prepared.schema), output, lambda _: None, lambda: 60.0, share=share
    )
    for _ in range(3):
        assert endpoint.answer(None).valid
    assert 0 < share - endpoint.share < share / 2
