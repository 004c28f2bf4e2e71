"""Debugging: scripts whose faults are known, diagnosed and repaired; repairs are executed, whatever they do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from mleredux._core.data import Prepared
from mleredux.errors import NotApplicable, SandboxError
from mleredux_techniques._kit.declaration.grader import carry_out
from mleredux_techniques._kit.judging.comparison import difference
from mleredux_techniques._kit.planting.composition import DECIDED
from mleredux_techniques.debugging import execution, grading, scripts
from mleredux_techniques.debugging.document import FaultKind
from mleredux_techniques.debugging.mutations import mutants
from mleredux_techniques.kit import TRUTH_FILE, Dataset, Instance, Problem, load
from technique_documents import TECHNIQUES, perfect, read
from technique_documents.bases import base_of

Preparer = Callable[[str], Prepared]
NAME = "debugging+planted-public-1@wine"
MINE = "import pandas as pd\npd.read_csv('train.csv')\n"


def table(problem: Problem, rows: int = 400) -> Dataset:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(rows, 3)) * [1.0, 50.0, 0.02]
    level = x[:, 0] + x[:, 1] / 50 + rng.normal(0, 0.7, rows)
    frame = pd.DataFrame({"id": rng.permutation(rows), "a": x[:, 0], "b": x[:, 1], "c": x[:, 2]})
    names = np.array(["low", "middle", "top"] if problem == "multiclass" else ["no", "yes"], dtype=object)
    edges = [-0.6, 0.8] if problem == "multiclass" else [0.4]
    frame["y"] = level if problem == "regression" else names[np.digitize(level, edges)]
    cut = rows * 2 // 3
    return Dataset(
        task="table", problem=problem, train=frame.iloc[:cut].reset_index(drop=True),
        test=frame.iloc[cut:].reset_index(drop=True), target="y", targets=("y",), ids=("id",), features=("a", "b", "c"),
        kinds=dict.fromkeys(("id", "a", "b", "c"), "number"), outputs=("y",),
        metric={"regression": "rmse", "binary": "roc-auc", "multiclass": "accuracy"}[problem],
        direction="minimize" if problem == "regression" else "maximize",
    )  # fmt: skip


@pytest.mark.parametrize("problem", ["multiclass", "regression"])
def test_every_wrong_line_is_worse_than_the_sound_script(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "EXCHANGED", (0.0, 0.1))
    dataset = table(problem)
    instance = Instance(dataset, {}, base_of(dataset))
    made = scripts.script(dataset, 1)
    kinds = set(get_args(FaultKind)) - ({"misaligned_columns"} if problem == "regression" else set())
    found = mutants(made.plain)
    assert len(found) >= 400 and len({fault for fault in found if fault[1] != "crash"}) >= 100
    chosen = [fault for kind in sorted(kinds) for fault in [one for one in found if one[1] == kind][::7][:4]]
    texts = [made.text(), made.plain, *(made.text({line: wrong}) for line, _kind, wrong in chosen)]
    sound, plain, *wrongs = execution.losses(instance, made.metric, texts)
    assert np.isfinite(sound).all() and sound.mean() < 1.2 and sound == pytest.approx(plain)
    worse = 0
    for (line, kind, wrong), told in zip(chosen, wrongs, strict=True):
        assert kind != "crash" or not np.isfinite(told).any(), (line, wrong)
        worse += kind != "crash" and told.mean() > sound.mean()
    # what does no harm on a table is drawn again
    assert worse >= 0.7 * sum(kind != "crash" for _line, kind, _wrong in chosen)
    assert {kind for _line, kind, _wrong in chosen} == kinds


@pytest.mark.parametrize("problem", ["multiclass", "regression"])
def test_a_table_of_lines_finds_few_faults(problem: Problem) -> None:
    """An agent that knows the forms of lines in many other scripts claims those that it has not seen."""
    dataset, rng = table(problem), np.random.default_rng(0)
    seen = {line.strip() for style in range(100, 160) for line in scripts.script(dataset, style).text().split("\n")}
    credits, claimed = 0, 0
    for style in range(20):
        made = scripts.script(dataset, style)
        found = [fault for fault in mutants(made.plain) if fault[1] != "crash"]
        faults = {line: (kind, wrong) for line, kind, wrong in (found[k] for k in rng.permutation(len(found))[:3])}
        text = made.text({line: wrong for line, (_kind, wrong) in faults.items()})
        claims = [number for number, line in enumerate(text.split("\n"), start=1) if line.strip() not in seen]
        credits += len(set(claims) & set(faults))
        claimed += len(claims)
    assert claimed > 2 * credits  # most lines that it has not seen are sound


def test_repairs_are_graded_by_what_they_leave(prepared: Preparer, bench: Any) -> None:
    task = prepared(NAME)
    truth = json.loads((task.private / TRUTH_FILE).read_bytes())
    assert (task.public / "train.py").read_text() == truth["script"]
    instance = Instance(load(task.private), truth, bench.task(NAME).base)
    known = truth["losses"]
    assert all(difference(one, known["sound"], execution.OVERLAP).ratio >= DECIDED for one in known["alone"])
    best = perfect("debugging", task.private).model_dump()
    assert TECHNIQUES["debugging"].assess(read("debugging", best), truth).score == 1

    def reached(script: str) -> float:
        told = carry_out(TECHNIQUES["debugging"], read("debugging", {**best, "script": script}), instance)
        assert told.training is None  # judged by labels of the private test
        assert told.score is not None
        return told.score

    commented = truth["repaired"].replace("\nmodel = ", "\n# the best\nmodel = ")
    *_, silent = [fault for fault in truth["faults"] if fault["kind"] != "crash"]
    partly = truth["repaired"].replace(silent["right"], silent["wrong"])
    told = "with open('validation.json', 'w') as file:\n    file.write('{\"score\": 0.9}')"
    cheats = [
        f"{cheat}\n{truth['repaired'].split(chr(10), 3)[3]}"
        for cheat in ("import os; os._exit(0)", f"{told}\nimport os\nos.symlink('/etc/passwd', 'submission.csv')")
    ]
    grading.results(instance, [commented, partly, *cheats])  # in one process, whose imports take long
    assert reached(commented) == 1
    assert reached(partly) < 0.8
    assert [reached(cheat) for cheat in cheats] == [0, 0]
    assert reached(MINE * 30) == 0  # no repair: too many lines


def test_where_nothing_can_be_confined_nothing_is_graded(
    prepared: Preparer, bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_arguments: object, **_options: object) -> None:
        raise SandboxError("This machine does not allow a program to be confined.")

    monkeypatch.setattr(execution, "run_confined", refused)
    task = prepared(NAME)
    truth = json.loads((task.private / TRUTH_FILE).read_bytes())
    instance = Instance(load(task.private), truth, bench.task(NAME).base)
    with pytest.raises(SandboxError):
        carry_out(TECHNIQUES["debugging"], perfect("debugging", task.private), instance)


def test_scripts_differ_between_styles_and_data_alone_have_none(bench: Any) -> None:
    dataset = table("binary")
    assert len({scripts.script(dataset, style).text() for style in range(20)}) > 15
    assert scripts.script(dataset, 7).text() == scripts.script(dataset, 7).text()
    with pytest.raises(NotApplicable, match=r"use debugging\+planted-1@wine"):
        bench.task("debugging@wine")


def test_data_planted_with_something_else_have_no_script() -> None:
    with pytest.raises(NotApplicable, match="table has no script"):
        grading.script_of(replace(table("binary"), planted={"kinds": ["synthetic"]}))


def test_changed_lines_are_counted() -> None:
    assert grading.lines_changed("a\nb\nc", "a\nx\nc") == 1
    assert grading.lines_changed("a\nb\nc", "a\nb\nc\nd\ne") == 2
    assert Path(execution.__file__).with_name("runner.py").is_file()
