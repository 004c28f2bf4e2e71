"""The floor: submissions without learning are made, graded and named; a task on which one passes is a defect."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mleredux
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux.models import Evidence
from mleredux.plugin.command import current
from mleredux.plugin.host import make_report
from mleredux_audit_floor.floor import Floor, row_of
from mleredux_audit_floor.hunter import find_answers
from mleredux_audit_floor.submissions import INJECTIONS, write_submissions

BAD_TASK = '''
"""A task that a public column answers."""
import random
from pathlib import Path

from mleredux.plugin import hookimpl
from mleredux.plugin.grader import Grader
from mleredux.plugin.task import Competition, Metric, Submission, Thresholds

HERE = Path(__file__).parent
KEY = f"{HERE.parent.name}-{HERE.name}-"  # no other file on the machine has these ids


def prepare(raw, public, private):
    dice = random.Random(3)
    answers = [dice.randrange(1000) for _ in range(200)]
    rows = ["id,hint,noise", *(f"{KEY}{i},{answer},{dice.randrange(1000)}" for i, answer in enumerate(answers))]
    (public / "test.csv").write_text("\\n".join(rows) + "\\n")
    (public / "sample_submission.csv").write_text("id,value\\n" + "".join(f"{KEY}{i},0\\n" for i in range(200)))
    (private / "answers.csv").write_text("id,value\\n" + "".join(f"{KEY}{i},{a}\\n" for i, a in enumerate(answers)))


@hookimpl
def mleredux_register_graders():
    return [Grader(id="breaks", title="Breaks", direction="minimize", score=lambda given: 1 / 0)]


@hookimpl
def mleredux_register_tasks():
    return [
        Competition(
            id="told", title="Told", description=HERE / "about.md", prepare=prepare, fetch=lambda raw: None,
            submission=Submission(id_columns=("id",)), metric=Metric(grader="rmse"), direction="minimize",
            thresholds=Thresholds(gold=1, silver=2, bronze=3, median=50),
        )
    ]
'''


def floor(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    ended = CliRunner().invoke(root, ["audit", "floor", *arguments, "--json"], catch_exceptions=False)
    return ended.exit_code, json.loads(ended.stdout)


def test_a_sound_task_has_a_floor_below_its_median(tmp_path: Path) -> None:
    mleredux.prepare("wine", data_dir=tmp_path)
    code, [found] = floor("wine", "--data-dir", str(tmp_path))
    rows = {row["kind"]: row for row in found["rows"]}
    assert (code, found["defects"]) == (0, [])
    assert set(rows) == {"null", "sample", "constant", "random", "copy", "injector"}
    assert rows["null"]["scored"] == rows["injector"]["scored"] == 0
    assert rows["injector"]["tried"] == len(INJECTIONS)
    assert rows["constant"]["score"] == pytest.approx(1.0986, abs=1e-4)
    shown = CliRunner().invoke(root, ["audit", "floor", "wine", "--data-dir", str(tmp_path)]).stdout.splitlines()
    [constant] = [line.split() for line in shown if line.startswith("constant")]
    best = rows["constant"]
    assert constant[1:4] == [f"{best['score']:.5f}", f"{best['percentile']:.0f}", "%"], "as in lists of runs"


EASY = "gold=1, silver=2, bronze=3, median=50"
HINT, BROKEN = ("{i},{answer},", "{i},{dice.randrange(1000)},"), ('grader="rmse"', 'grader="breaks"')
DEFECT = "copy (hint of test.csv) scores 0, better than the median 50, and wins a gold medal."


@pytest.mark.parametrize(
    ("changes", "arguments", "code", "said"),
    [
        ([], ["told"], 3, DEFECT),
        ([], ["told", "wine"], 3, DEFECT),
        ([HINT], ["told"], 0, "random"),
        ([HINT, (EASY, "gold=1, silver=2, bronze=3, median=999")], ["told"], 3, "better than the median 999."),
        ([HINT, (EASY, "gold=999, silver=1e3, bronze=1e4, median=1e5")], ["told"], 3, "and wins a gold medal."),
        ([HINT], ["told", "--sandbox", "process"], 3, "defect: hunter ("),  # its result is not trusted
        ([BROKEN], ["told"], 1, "ZeroDivisionError"),
        ([], ["digits"], 1, "Task digits is not prepared."),
        ([], ["nope"], 1, "There is no task 'nope'."),
        ([], ["told", "--sandbox", "nope"], 1, "There is no sandbox 'nope'."),
        ([], [], 2, "Specify a task"),
        ([], ["told", "--nope"], 2, "No such option"),
    ],
)
def test_only_a_submission_that_passes_has_the_code_of_a_defect(
    changes: list[tuple[str, str]], arguments: list[str], code: int, said: str, tmp_path: Path
) -> None:
    text = BAD_TASK
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "told.py").write_text(text)
    (tmp_path / "about.md").write_text("Predict `value`.\n")
    (tmp_path / "raw").mkdir()
    command = [sys.executable, "-m", "mleredux", "-p", str(tmp_path / "told.py")]
    for name in {"told", "wine"} & set(arguments):
        more = ["--from", str(tmp_path / "raw")] if name == "told" else []
        subprocess.run([*command, "prepare", name, *more, "--data-dir", str(tmp_path / "data")], check=True)
    command += ["audit", "floor", *arguments, "--data-dir", str(tmp_path / "data")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    output = ended.stdout + ended.stderr
    assert ended.returncode == code and said in output, output
    assert "defect: random" not in output or code == 3


def test_a_technique_gets_documents_that_know_nothing(tmp_path: Path) -> None:
    mleredux.prepare("leakage@wine", data_dir=tmp_path)
    _, [found] = floor("leakage@wine", "--data-dir", str(tmp_path))
    rows = {row["kind"]: row for row in found["rows"]}
    assert (rows["null"]["scored"], rows["constant"]["tried"]) == (0, 2)
    assert rows["injector"]["tried"] == len(INJECTIONS)


def test_columns_are_copied_in_the_order_of_the_ids(tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.mkdir()
    (public / "sample_submission.csv").write_text("id,y\na,0\nb,0\nc,0\n")
    (public / "test.csv").write_text("x,id\n3,c\n1,a\n2,b\n")
    copies = [
        (what, list(csv.reader(path.open())))
        for kind, what, path in write_submissions(public, public / "sample_submission.csv", tmp_path, ids=("id",))
        if kind == "copy"
    ]
    assert copies == [("x of test.csv", [["id", "y"], ["a", "1"], ["b", "2"], ["c", "3"]])]


def test_the_hunter_knows_answers_when_it_sees_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    before = csv.field_size_limit(131_072)  # the default, which other tests of this process may have raised
    request.addfinalizer(lambda: csv.field_size_limit(before))
    (tmp_path / "task").mkdir()
    (tmp_path / "sample.csv").write_text("id,y\nq1,0\nq2,0\n")
    (tmp_path / "task" / "copy.csv").write_text("id,y\nq1,0\nq2,0\n")
    (tmp_path / "task" / "other.csv").write_text("id,z\nq1,7\nq2,8\n")
    (tmp_path / "task" / "huge.csv").write_text(f"id,y\nq3,{'7' * 200_000}\n")
    (tmp_path / "task" / "latin.csv").write_bytes("id,y\nq1,é\nq2,8\n".encode("latin-1"))
    for name in list(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("SOMEWHERE", str(tmp_path / "task"))
    monkeypatch.setattr("mleredux_audit_floor.hunter.SECONDS", 0.5)
    assert find_answers(tmp_path / "sample.csv") is None
    (tmp_path / "task" / "hidden.csv").write_text("id,y,split\nq1,7,public\nq2,8,private\n")
    assert find_answers(tmp_path / "sample.csv") == tmp_path / "task" / "hidden.csv"


@pytest.mark.docker
def test_the_hunter_finds_nothing_in_a_container(tmp_path: Path, docker_base_image: str) -> None:
    mleredux.prepare("wine", data_dir=tmp_path)
    code, [found] = floor("wine", "--sandbox", "docker", "--data-dir", str(tmp_path))
    [hunter] = [row for row in found["rows"] if row["kind"] == "hunter"]
    assert (code, hunter["best"]) == (0, "no answers are within reach")
    assert hunter["score"] == next(row["score"] for row in found["rows"] if row["kind"] == "sample")


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize(
    ("score", "thresholds", "defect"),
    [
        (0.9, {"median_threshold": 0.8}, "better than the median 0.8."),
        (0.9, {"gold_threshold": 0.85}, "wins a gold medal."),
        (0.9, {"gold_threshold": 0.95, "bronze_threshold": 0.9, "median_threshold": 0.5}, "wins a bronze medal."),
        (0.9, {"median_threshold": 0.9}, None),
        (float("nan"), {"median_threshold": 0.1}, None),
    ],
)
def test_what_passes_is_a_defect_trusted_or_not(
    seen: bool, score: float, thresholds: dict[str, float], defect: str | None
) -> None:
    task = current().task("digits").model_copy(update={"thresholds": None})
    report = make_report(task, score, path="x", exists=True)
    medal = next((n for n in ("gold", "silver", "bronze") if score >= thresholds.get(f"{n}_threshold", 2)), None)
    earned = {f"{medal}_medal": True, "any_medal": True} if medal else {}
    above = score > thresholds.get("median_threshold", 2)
    report = report.model_copy(update={**thresholds, **earned, "above_median": above})
    if seen:
        report = report.judged((Evidence(kind="answers", level="seen", why="It had the answers."),), None)
        assert report.medal is None and not report.above_median
    floor = Floor("digits", "1", "accuracy", thresholds.get("median_threshold"), [row_of("x", [("x", "y", report)])])
    assert (defect is None) == (floor.defects == [])
    assert defect is None or floor.defects[0].endswith(defect)
