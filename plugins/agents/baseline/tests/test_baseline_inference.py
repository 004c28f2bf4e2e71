"""What the baseline infers from tables, sample and metric, and in which form it answers."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux_agent_baseline.columns import clean, profile_of, texts
from mleredux_agent_baseline.files import Facts, NotForBaseline, metric_in, read_facts
from mleredux_agent_baseline.problem import Problem, infer
from mleredux_agent_baseline.solve import answer_columns, write_submission
from mleredux_agent_baseline.tables import align, load_tables

ROWS = 60


def write_task(folder: Path, target: dict[str, Any], sample: dict[str, Any], **features: Any) -> Path:
    """A task of 60 training rows and 20 test rows; `sample` gives the value of each column in all rows."""
    random = np.random.default_rng(0)
    features = features or {"x": random.normal(size=ROWS + 20), "y": random.normal(size=ROWS + 20)}
    table = pd.DataFrame({"id": range(100, 100 + ROWS + 20), **features})
    table[:ROWS].assign(**target).to_csv(folder / "train.csv", index=False)
    table[ROWS:].to_csv(folder / "test.csv", index=False)
    pd.DataFrame({"id": table["id"][ROWS:], **sample}).to_csv(folder / "sample_submission.csv", index=False)
    return folder


def problem_of(folder: Path, metric: str = "", **facts: Any) -> Problem:
    known = Facts(sample="sample_submission.csv", metric=metric, **facts)
    return infer(load_tables(folder, known), known)


def some(*values: Any) -> list[Any]:
    return [values[row % len(values)] for row in range(ROWS)]


@pytest.mark.parametrize(
    ("values", "sample", "metric", "classes", "form"),
    [
        (some(0, 1), 0, "accuracy", [0, 1], "label"),
        (some(0, 1), 0, "roc-auc", [0, 1], "probability"),
        (some(0, 1), 0.5, "log-loss", [0, 1], "probability"),
        (some(0, 1), 0.5, "", [0, 1], "probability"),
        (some(0, 1), 0, "", [0, 1], "label"),
        (some(True, False), False, "accuracy", [False, True], "label"),
        (some("no", "yes"), "no", "f1", ["no", "yes"], "label"),
        (some("a", "b", "c"), "a", "", ["a", "b", "c"], "label"),
        (some(1.0, 2.0, 3.0), 1, "quadratic-weighted-kappa", [1, 2, 3], "label"),
        (some(0, 1, 2), 1, "rmse", [], "value"),
        (np.linspace(0, 9, ROWS), 4.5, "", [], "value"),
        (np.linspace(0, 9, ROWS), 4.5, "roc-auc", [], "value"),
    ],
)
def test_one_target_and_how_it_is_handed_in(
    tmp_path: Path, values: Any, sample: Any, metric: str, classes: list[Any], form: str
) -> None:
    problem = problem_of(write_task(tmp_path, {"target": values}, {"target": sample}), metric)
    assert problem.ids == ["id"]
    assert problem.features == ["x", "y"]
    (head,) = problem.heads
    assert (head.columns, head.classes, head.form) == (["target"], classes, form)


@pytest.mark.parametrize("prefix", ["", "Status_"])
def test_columns_of_probabilities_stand_for_the_classes_of_a_training_column(tmp_path: Path, prefix: str) -> None:
    sample = {f"{prefix}{value}": 0.25 for value in ("C", "CL", "D")}
    problem = problem_of(write_task(tmp_path, {"Status": some("C", "CL", "D")}, sample), "log-loss")
    (head,) = problem.heads
    assert head.columns == list(sample)
    assert head.classes == ["C", "CL", "D"]
    assert head.form == "probability"


def test_columns_of_which_one_is_set_in_each_row_are_classes(tmp_path: Path) -> None:
    target = {name: some(*(int(name == other) for other in "abc")) for name in "abc"}
    (head,) = problem_of(write_task(tmp_path, target, dict.fromkeys("abc", 0.3)), "log-loss").heads
    assert head.classes == ["a", "b", "c"]
    assert head.y.tolist() == some(0, 1, 2)


def test_columns_of_which_several_may_be_set_are_targets_of_their_own(tmp_path: Path) -> None:
    target = {"toxic": some(0, 1), "rude": some(0, 0, 1), "kind": some(1, 1, 1, 0)}
    heads = problem_of(write_task(tmp_path, target, dict.fromkeys(target, 0.5)), "roc-auc").heads
    assert [head.columns for head in heads] == [["toxic"], ["rude"], ["kind"]]
    assert all(head.form == "probability" for head in heads)


def test_many_numeric_targets_are_fitted_together(tmp_path: Path) -> None:
    target = {f"t{place}": np.arange(ROWS) * place / 7 for place in range(12)}
    (head,) = problem_of(write_task(tmp_path, target, dict.fromkeys(target, 0.0)), "mcrmse").heads
    assert head.y.shape == (ROWS, 12)


def test_the_only_column_that_the_test_table_lacks_is_the_target_under_another_name(tmp_path: Path) -> None:
    problem = problem_of(write_task(tmp_path, {"survived": some(0, 1)}, {"prediction": 0}), "accuracy")
    assert problem.heads[0].columns == ["prediction"]
    assert problem.features == ["x", "y"]


def test_rows_without_a_target_are_not_learned_from(tmp_path: Path) -> None:
    problem = problem_of(write_task(tmp_path, {"target": some(0.5, None, 2.5)}, {"target": 1.0}), "rmse")
    assert len(problem.rows) == 40 == len(problem.heads[0].y)


def test_a_text_that_names_the_row_is_a_feature_all_the_same(tmp_path: Path) -> None:
    comments = [f"this is comment {row} of many" for row in range(ROWS + 20)]
    table = pd.DataFrame({"Comment": comments})
    table[:ROWS].assign(Insult=some(0, 1)).to_csv(tmp_path / "train.csv", index=False)
    table[ROWS:].to_csv(tmp_path / "test.csv", index=False)
    table[ROWS:].assign(Insult=0).to_csv(tmp_path / "sample_submission_null.csv", index=False)
    facts = Facts(sample="sample_submission_null.csv", id_columns=("Comment",), metric="roc-auc")
    assert infer(load_tables(tmp_path, facts), facts).features == ["Comment"]


def test_a_target_that_is_nowhere_is_said(tmp_path: Path) -> None:
    write_task(tmp_path, {"a": some(1, 2), "b": some(3, 4)}, {"other": 0})
    with pytest.raises(NotForBaseline, match="no column for other"):
        problem_of(tmp_path)


def test_labels_in_a_table_of_their_own_are_joined(tmp_path: Path) -> None:
    write_task(tmp_path, {}, {"label": 0})
    pd.DataFrame({"id": range(100, 100 + ROWS), "label": some(0, 1)}).to_csv(tmp_path / "train_labels.csv", index=False)
    problem = problem_of(tmp_path, "accuracy")
    assert problem.heads[0].y.tolist() == some(0, 1)
    assert problem.features == ["x", "y"]


@pytest.mark.parametrize("form", ["csv.zip", "csv.gz", "json", "jsonl", "tsv"])
def test_tables_in_other_forms_are_read(tmp_path: Path, form: str) -> None:
    write_task(tmp_path, {"target": some(0, 1)}, {"target": 0})
    for name in ("train", "test"):
        plain = tmp_path / f"{name}.csv"
        table, path = pd.read_csv(plain), tmp_path / f"{name}.{form}"
        if form == "csv.zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.write(plain, plain.name)
        elif form == "json":
            table.to_json(path, orient="records")
        elif form == "jsonl":
            table.to_json(path, orient="records", lines=True)
        else:
            table.to_csv(path, index=False, sep="\t" if form == "tsv" else ",")
        plain.unlink()
    problem = problem_of(tmp_path, "accuracy")
    assert problem.heads[0].y.tolist() == some(0, 1)
    assert problem.features == ["x", "y"]


def test_a_large_table_is_read_in_part(tmp_path: Path) -> None:
    write_task(tmp_path, {"target": some(0, 1)}, {"target": 0})
    pd.DataFrame({"id": range(200_000), "x": 1.5, "target": 0}).to_csv(tmp_path / "train.csv", index=False)
    tables = load_tables(tmp_path, Facts(sample="sample_submission.csv"), max_rows=30_000)
    assert 10_000 < len(tables.train) <= 30_000
    assert len(tables.train) == pytest.approx(tables.kept * 200_000, rel=0.1)


@settings(max_examples=50, deadline=None)
@given(st.permutations(range(12)))
def test_test_rows_come_in_the_order_of_the_sample(order: list[int]) -> None:
    test = pd.DataFrame({"key": [f"k{row}" for row in order], "x": order})
    sample = pd.DataFrame({"key": [f"k{row}" for row in range(12)]})
    aligned = align(test, sample, ["key"])
    assert aligned is not None
    assert aligned["x"].tolist() == list(range(12))


def test_a_test_table_without_the_samples_ids_is_refused_where_lengths_differ() -> None:
    assert align(pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"id": [1, 2, 3]}), ["id"]) is None
    assert align(pd.DataFrame({"id": [1, 2, 9]}), pd.DataFrame({"id": [1, 2, 3]}), ["id"]) is None


def test_codes_fall_into_parts_and_sentences_stay_texts() -> None:
    table = pd.DataFrame(
        {
            "cabin": [f"{'ABC'[row % 3]}/{row}/P" for row in range(ROWS)],
            "words": [f"some words about {row}" for row in range(ROWS)],
            "day": [f"2021-03-{1 + row % 28:02d} 10:00:00" for row in range(ROWS)],
            "kind": some("red", "green"),
            "old": some(True, False, None),
            "n": range(ROWS),
        }
    )
    profile = profile_of(table, list(table.columns))
    assert profile.codes == {"cabin": 3}
    assert profile.texts == ["words"]
    assert profile.others == ["day", "kind"]
    assert profile.numeric == ["old", "n"]
    cleaned = clean(table, profile)
    assert cleaned["cabin.1"].tolist() == list(range(ROWS))
    assert cleaned["cabin.0"].iloc[:3].tolist() == ["A", "B", "C"]
    assert texts(table, profile)[1] == "some words about 1"


def test_ids_are_handed_in_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "sample_submission.csv").write_text("id,target\n007,0\n1.50,0\nNA,0\n", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    write_task(tmp_path / "sub", {"target": some(0, 1)}, {"target": 0})
    (head,) = problem_of(tmp_path / "sub", "accuracy").heads
    prediction = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    write_submission(tmp_path / "sample_submission.csv", tmp_path / "submission.csv", [head], [prediction])
    assert (tmp_path / "submission.csv").read_text(encoding="utf-8") == "id,target\n007,0\n1.50,1\nNA,1\n"


def test_ordered_classes_are_handed_in_as_the_one_nearest_to_the_expected(tmp_path: Path) -> None:
    problem = problem_of(write_task(tmp_path, {"grade": some(1, 2, 3)}, {"grade": 1}), "quadratic-weighted-kappa")
    answer = answer_columns(problem.heads[0], np.array([[0.4, 0.3, 0.3]]))
    assert answer == {"grade": [2]}


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("# Evaluation\n\nSubmissions are scored by area under the ROC curve.\n", "roc-auc"),
        ("## Evaluation\nmulti-class logarithmic loss\n", "log-loss"),
        ("## Evaluation\nThe root mean squared logarithmic error.\n\n## Notes\naccuracy matters", "rmsle"),
        ("We use RMSE.", "rmse"),
        ("Nothing is said.", ""),
    ],
)
def test_the_metric_is_found_in_the_description(text: str, metric: str) -> None:
    assert metric_in(text) == metric


def test_a_damaged_task_file_leaves_the_facts_open(tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text("{", encoding="utf-8")
    assert read_facts(tmp_path) == Facts()
