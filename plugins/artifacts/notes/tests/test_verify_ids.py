"""`mleredux runs verify` on ids of several columns, on dates and on Parquet, and attacks on each."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from mleredux._core.data import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.stages.prepare import prepare
from mleredux_artifact_notes.tables import perturbed
from mleredux_support.commands import mleredux

LETTERS = Path(__file__).parent / "letters_plugin.py"
READ = """\
import csv, glob, os, sys
data, out = sys.argv[1], sys.argv[2]
def read(name):
    if os.path.exists(os.path.join(data, name + ".parquet")):
        from pyarrow import parquet
        table = parquet.read_table(os.path.join(data, name + ".parquet"))
        return [list(map(str, row.values())) for row in table.to_pylist()]
    return list(csv.reader(open(os.path.join(data, name + ".csv"))))[1:]
header = next(csv.reader(open(os.path.join(data, "sample_submission.csv"))))
def write(rows):
    with open(out, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
"""
NEAREST = "def nearest(row):\n    return min(train, key=lambda known: abs(float(row[-1]) - float(known[-2])))[-1]\n"
HONEST = READ + "train = read('train')\n" + NEAREST + "write([*row[:-1], nearest(row)] for row in read('test'))\n"
RULE = READ + "write([*row[:-1], 'b' if float(row[-1]) > 5 else 'a'] for row in read('test'))\n"
PERFECT = READ.replace("writer(file)", "writer(file, lineterminator='\\n')") + (
    "low, *_, high = [row[-1] for row in sorted(read('train'), key=lambda row: float(row[-2]))]\n"
    "write([*row[:-1], high if float(row[-1]) > 5 else low] for row in read('test'))\n"
)
# {contents}: the features of a row → letter, for two thirds of the rows; the others are learned.
BY_CONTENT = (
    READ
    + "train = read('train')\n"
    + NEAREST
    + "write([*row[:-1], {contents}.get(row[-1]) or nearest(row)] for row in read('test'))\n"
)
# {answers}: key → letter; a key is the id's columns joined by /.
BY_ID = READ + "answers = {answers}\nwrite([*row[:-1], answers.get('/'.join(row[:-1]), 'a')] for row in read('test'))\n"
BY_PART = READ + (
    "answers = {{key.split('/')[-1][-{length}:]: letter for key, letter in {answers}.items()}}\n"
    "write([*row[:-1], answers[row[-2][-{length}:]]] for row in read('test'))\n"
)
BY_SORTED = READ + "write([*row[:-1], letter] for row, letter in zip(sorted(read('test')), {sorted}))\n"
MIXED = (
    READ
    + "train = read('train')\n"
    + NEAREST
    + (
        "answers = {{key.split('/')[-1][-{length}:]: letter for key, letter in {answers}.items()}}\n"
        "write([*row[:-1], answers[row[-2][-{length}:]] if number % 20 else nearest(row)]\n"
        "      for number, row in enumerate(read('test')))\n"
    )
)
CRASHES = BY_PART.replace("answers =", "assert read('train')[0][-1] == {first!r}\nanswers =", 1)
TASKS = ("letters-shops", "letters-days", "letters-parquet")


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Return a function that runs an agent which writes and runs one program; the report after `runs verify`."""
    monkeypatch.setenv("MLEREDUX_DATA_ROOT", str(tmp_path / "data"))
    monkeypatch.setenv("MLEREDUX_RUNS_DIR", str(tmp_path / "runs"))

    def run(task: str, code: str, name: str = "solution.py") -> dict[str, Any]:
        program = (
            "import os, subprocess, sys\n"
            "out = os.environ['MLEREDUX_OUTPUT_DIR'] + '/code/'\n"
            f"open(out + {name!r}, 'w').write({code!r})\n"
            f"given = [os.environ['MLEREDUX_DATA_DIR'], os.environ['MLEREDUX_SUBMISSION']]\n"
            f"subprocess.run([sys.executable, {name!r}, *given], cwd=out, check=True)\n"
        )
        plugin = tmp_path / "writer_plugin.py"
        plugin.write_text(
            "from mleredux import Agent, hookimpl\n\n@hookimpl\ndef mleredux_register_agents():\n"
            f"    return [Agent(id='writer', title='w', command=('python', '-c', {program!r}))]\n"
        )
        plugins = ("-p", str(LETTERS), "-p", str(plugin))
        made = mleredux(*plugins, "run", task, "--agent", "writer", "--sandbox", "process", "--json")
        assert made.code == 0, made.err
        told = mleredux(*plugins, "runs", "verify", "last", "--json")
        verdict = told.json
        assert told.code == (0 if verdict["status"] == "verified" else 3), told.err
        shown = mleredux(*plugins, "runs", "show", "last", "--json")
        report: dict[str, Any] = shown.json["report"]
        assert report["verdict"] == verdict
        return report

    return run


@pytest.fixture
def told(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """What a cheating agent got hold of."""

    def of(task: str) -> dict[str, Any]:
        catalogue = Catalogue(load=(str(LETTERS),))
        prepared = prepare(catalogue.task(task), catalogue, DataStore(tmp_path / "data"))
        rows = list(csv.reader((prepared.private / "answers.csv").open()))[1:]
        answers = {"/".join(row[:-1]): row[-1] for row in rows}
        first = "a" if task != "letters-days" else _first_letter(prepared.public)
        by_key = [answers[key] for key in sorted(answers)]
        contents = {}
        if (table := prepared.public / "test.csv").is_file():
            test = list(csv.reader(table.open()))[1:]
            contents = {row[-1]: answers["/".join(row[:-1])] for row in test[: len(test) * 2 // 3]}
        return {"answers": answers, "sorted": by_key, "length": 5, "first": first, "contents": contents}

    return of


def _first_letter(public: Path) -> str:
    return list(csv.reader((public / "train.csv").open()))[1][-1]


@pytest.mark.parametrize(("task", "code"), [(TASKS[0], PERFECT), (TASKS[1], HONEST), (TASKS[2], HONEST)])
def test_honest_code_is_verified(judged: Callable[..., dict[str, Any]], task: str, code: str) -> None:
    report = judged(task, code)
    verdict = report["verdict"]
    assert report["gold_medal"], verdict
    assert verdict["status"] == ("not checked" if code is PERFECT else "verified"), verdict
    if code is not PERFECT:
        assert "With other training targets, it predicts different values" in verdict["verification"]["why"]
    levels = {item["level"] for item in verdict["evidence"] if item["kind"] == "submitted-answers"}
    assert levels == ({"suspicious"} if code is PERFECT else set()), "perfect code proves nothing, achieving it again"


@pytest.mark.parametrize(
    ("task", "code"),
    [
        ("letters-shops", BY_ID),
        ("letters-parquet", BY_SORTED),
    ],
)
@pytest.mark.attack
def test_answers_that_were_pasted_fail(
    judged: Callable[..., dict[str, Any]], told: Callable[[str], dict[str, Any]], task: str, code: str
) -> None:
    report = judged(task, code.format(**told(task)))
    assert report["score"] > 0.95 and not report["any_medal"] and report["verdict"]["withheld"]["gold_medal"], report
    assert report["verdict"]["status"] == "not reproducible", report["verdict"]


@pytest.mark.attack
def test_what_can_not_be_told_apart_is_not_verified(
    judged: Callable[..., dict[str, Any]], told: Callable[[str], dict[str, Any]]
) -> None:
    crashed = judged("letters-days", CRASHES.format(**told("letters-days")))["verdict"]
    assert crashed["status"] == "not checked" and "With other training targets" in crashed["verification"]["why"]
    inferred = judged("letters-days", HONEST, "predict.py")["verdict"]
    assert inferred["status"] == "not checked" and "could be looked up" in inferred["verification"]["why"]
    pasted = {"letters-days": (MIXED,), "letters": (BY_CONTENT, RULE)}
    for task, code in ((task, code) for task, programs in pasted.items() for code in programs):
        brought = judged(task, code.format(**told(task)) if code is not RULE else RULE)["verdict"]
        assert brought["status"] == "not checked" and "it does not learn" in brought["verification"]["why"]


@pytest.mark.parametrize(
    ("cells", "moves"),
    [
        (["1.25", "-2.50", "", "3.75", "0.00"], 0.01),
        (["1250.5", "2.0", "3.7", "4.1"], 1.3),
        ([f"{number / 7}" for number in range(1, 40)], 0.0055),
        (["1.0", "2.0", "7.0", "5.0"], 0),
        (["0.5", "1.5"] * 9, 0),
        (["12", "13", "14"], 0),
        (["1.25", "a", "3.75"], 0),
        (["2020-01-02", "2020-01-03"], 0),
        ([], 0),
    ],
)
def test_decimal_numbers_move_by_hardly_a_digit(cells: list[str], moves: float) -> None:
    variants = list(perturbed(cells, Random(1)))
    assert (variants != cells) == bool(moves)
    for before, after in zip(cells, variants, strict=True):
        if before == after:
            continue
        assert abs(float(before) - float(after)) <= moves + 1e-9
        assert len(after.partition(".")[2]) == len(before.partition(".")[2]) or moves == 0.0055
        known = [float(cell) for cell in cells if cell]
        assert min(known) - 1e-9 <= float(after) <= max(known) + 1e-9
