"""Metrics, blends, features and the exported script."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from mleredux_agent_baseline import metrics
from mleredux_agent_baseline.columns import Profile, profile_of
from mleredux_agent_baseline.export import MODULES, write_solution
from mleredux_agent_baseline.features import Features, kinds_for
from mleredux_agent_baseline.files import Facts
from mleredux_agent_baseline.fit import Choice, blend_loss, fit_predict, mix, select
from mleredux_agent_baseline.images import find_images, image_column, read_pixels
from mleredux_agent_baseline.metrics import metric_for
from mleredux_agent_baseline.models import CLASSIFIERS, REGRESSORS
from mleredux_agent_baseline.problem import Head
from mleredux_agent_baseline.search import Search, make_folds
from mleredux_agent_baseline.solve import solve, useful_threads
from threadpoolctl import threadpool_limits

NUMBERS = npst.arrays(float, 20, elements=st.floats(0.1, 100))


@settings(max_examples=30, deadline=None)
@given(NUMBERS)
@pytest.mark.parametrize("name", sorted(metrics._NUMBER))
def test_of_numbers_the_truth_has_the_least_loss(name: str, y: np.ndarray) -> None:
    metric = metric_for(name, classes=False, labels=False)
    worse = np.roll(y, 1) + 1
    assert metric.loss(y, y) <= metric.loss(y, worse) + 1e-9


@settings(max_examples=30, deadline=None)
@given(npst.arrays(int, 20, elements=st.integers(0, 2)))
@pytest.mark.parametrize("name", sorted(metrics._CLASS))
def test_of_classes_the_truth_has_the_least_loss(name: str, y: np.ndarray) -> None:
    y[:3] = [0, 1, 2]
    metric = metric_for(name, classes=True, labels=False)
    truth = np.eye(3)[y] * 0.94 + 0.02
    worse = np.roll(truth, 1, axis=0)
    assert metric.loss(y, truth) <= metric.loss(y, worse) + 1e-9


def test_an_unknown_metric_has_a_stand_in_of_its_kind() -> None:
    assert metric_for("something", classes=True, labels=True).name == "accuracy"
    assert metric_for("something", classes=True, labels=False).name == "log-loss"
    assert metric_for("bias-roc-auc", classes=True, labels=False).name == "roc-auc"
    assert metric_for("something", classes=False, labels=False).name == "rmse"


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_blend_is_never_worse_than_its_best_member_on_the_rows_it_was_chosen_by(seed: int, labels: bool) -> None:
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, 40)
    predictions = {
        str(noise): (values := np.eye(3)[y] + noise * random.random((40, 3))) / values.sum(axis=1, keepdims=True)
        for noise in (1, 2, 4)
    }
    metric = metric_for("accuracy" if labels else "log-loss", classes=True, labels=labels)
    choices = select(predictions, y, metric, labels=labels)
    assert sum(choice.weight for choice in choices) == pytest.approx(1)
    best = min(blend_loss(metric, y, values, labels=labels) for values in predictions.values())
    assert blend_loss(metric, y, mix(predictions, choices), labels=labels) <= best + 1e-9


def mixed_table(rows: int = 120) -> pd.DataFrame:
    random = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "n": random.normal(size=rows),
            "gaps": np.where(random.random(rows) < 0.2, np.nan, random.normal(size=rows)),
            "kind": random.choice(["red", "green", "blue"], rows),
            "code": [f"{random.integers(9)}/{row}/Z" for row in range(rows)],
            "day": pd.date_range("2020-01-01", periods=rows).astype(str),
            "words": [f"{'good' if row % 2 else 'bad'} thing number {row} here" for row in range(rows)],
        }
    )


@pytest.mark.parametrize("kind", ["plain", "scaled", "text"])
def test_features_of_unseen_rows_have_the_same_columns_and_unseen_categories_do_no_harm(kind: str) -> None:
    table = mixed_table()
    profile = profile_of(table, list(table.columns))
    unseen = table[90:].copy()
    unseen.loc[unseen.index[0], ["kind", "code", "words"]] = ["violet", "no code", None]
    learned, applied = Features(table[:90], unseen, profile, seed=0).get(kind)
    assert applied.shape == (30, learned.shape[1])
    if kind != "plain":
        assert np.isfinite(applied.data if kind == "text" else applied).all()


@pytest.mark.parametrize("candidate", (*CLASSIFIERS, *REGRESSORS), ids=lambda one: one.name)
def test_every_candidate_fits_and_predicts(candidate: object) -> None:
    table = mixed_table()
    table = pd.concat([table, pd.DataFrame(np.random.default_rng(0).random((120, 64))).add_prefix("image:")], axis=1)
    profile = profile_of(table, list(table.columns))
    assert candidate.features in kinds_for(profile)  # type: ignore[attr-defined]
    classes = candidate in CLASSIFIERS
    y = np.arange(120) % 2 if classes else table["n"].to_numpy() * 3 + 7
    head = Head(["t"], y, [0, 1] if classes else [], "probability" if classes else "value")
    x, _ = Features(table, table, profile, 0).get(candidate.features)  # type: ignore[attr-defined]
    (prediction,) = fit_predict(candidate, head, x, np.arange(120), [x], "", 0, 1)  # type: ignore[arg-type]
    assert prediction.shape == ((120, 2) if classes else (120,))
    assert np.isfinite(prediction).all()
    if classes:
        assert np.allclose(prediction.sum(axis=1), 1)


def test_a_class_that_a_fold_lacks_gets_no_probability() -> None:
    head = Head(["t"], np.array([0, 0, 1, 1, 2]), [0, 1, 2], "probability")
    x = np.arange(10.0).reshape(5, 2)
    logistic = next(one for one in CLASSIFIERS if one.name.startswith("logistic"))
    (prediction,) = fit_predict(logistic, head, x[:4], np.arange(4), [x], "", 0, 1)
    assert prediction.shape == (5, 3)
    assert (prediction[:, 2] == 0).all()
    (alone,) = fit_predict(logistic, head, x[:2], np.arange(2), [x], "", 0, 1)
    assert (alone == [1, 0, 0]).all()


def test_numbers_are_fitted_on_the_logarithm_where_the_metric_is() -> None:
    x = np.linspace(0, 5, 50)[:, None]
    head = Head(["t"], np.exp(x[:, 0]) - 1, [], "value")
    ridge = next(one for one in REGRESSORS if one.name == "ridge")
    straight = fit_predict(ridge, head, x, np.arange(50), [x], "rmse", 0, 1)[0]
    logarithmic = fit_predict(ridge, head, x, np.arange(50), [x], "rmsle", 0, 1)[0]
    metric = metric_for("rmsle", classes=False, labels=False)
    assert metric.score(head.y, logarithmic) < 0.05 < metric.score(head.y, straight)
    assert (straight >= 0).all()


@pytest.mark.parametrize("rows", [4, 7, 30, 200])
def test_every_row_is_held_out_once(rows: int) -> None:
    head = Head(["t"], np.arange(rows) % 2, [0, 1], "label")
    folds = make_folds([head], rows, 3, 5, seed=0)
    assert sorted(np.concatenate([held for _, held in folds])) == list(range(rows))
    assert all(not set(train) & set(held) for train, held in folds)


def test_three_rows_are_too_few() -> None:
    with pytest.raises(ValueError, match="too few"):
        make_folds([Head(["t"], np.arange(3.0), [], "value")], 3, 1, 5, seed=0)


def test_a_search_is_repeatable() -> None:
    table = mixed_table()
    profile = profile_of(table, list(table.columns))
    head = Head(["t"], (np.arange(120) // 2) % 2, [0, 1], "label")
    candidate = next(one for one in CLASSIFIERS if one.name == "extra trees")
    found = []
    for _ in range(2):
        features = Features(table, table, profile, 0)
        search = Search(features, [head], "accuracy", folds=3, seed=7, threads=1, end=float("inf"))
        search.try_candidate(candidate, [0])
        found.append(search.predictions[0][candidate.name])
    assert np.array_equal(found[0], found[1])


def test_images_are_found_by_the_ids_that_name_them(tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "images").mkdir()
    for number in range(12):
        Image.new("RGB", (40, 30), (number * 20, 0, 255)).save(tmp_path / "images" / f"{number}.png")
    images = find_images(tmp_path)
    train, test = pd.DataFrame({"id": range(8)}), pd.DataFrame({"id": range(8, 12)})
    assert image_column(train, test, images) == "id"
    pixels = read_pixels(train["id"], images, colour=True, deadline=float("inf"))
    assert pixels.shape == (8, 16 * 16 * 3)
    assert pixels.iloc[3].tolist()[:3] == pytest.approx([60 / 255, 0, 1], abs=0.01)
    assert image_column(train, pd.DataFrame({"id": ["x"]}), images) is None


@pytest.mark.parametrize(("columns", "pixels", "threads"), [(200, 768, 1), (20, 0, 1), (400, 768, 2)])
def test_small_tables_take_one_thread_and_pixels_count_as_their_components(
    columns: int, pixels: int, threads: int
) -> None:
    table = pd.DataFrame(np.zeros((700, columns + pixels)))
    prepared = SimpleNamespace(train=table, profile=Profile(images=[str(place) for place in range(pixels)]))
    with threadpool_limits():
        assert useful_threads(prepared, 2) == threads  # type: ignore[arg-type]


def test_an_archive_of_images_is_opened_once_however_many_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        for number in range(12):
            with archive.open(f"images/{number}.png", "w") as member:
                Image.new("L", (40, 30), number * 20).save(member, "png")
    images, opened = find_images(tmp_path), []

    class Counted(zipfile.ZipFile):
        def __init__(self, path: Path) -> None:
            opened.append(path)
            super().__init__(path)

    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    pixels = read_pixels(pd.Series(range(12)), images, colour=False, deadline=float("inf"))
    assert pixels.mean(axis=1).tolist() == pytest.approx([number * 20 / 255 for number in range(12)], abs=0.01)
    assert opened == [tmp_path / "images.zip"]


def test_the_exported_script_stands_alone_and_makes_the_same_submission(tmp_path: Path) -> None:
    table = mixed_table().assign(target=lambda frame: (frame["n"] > 0).astype(int))
    table.insert(0, "id", range(len(table)))
    table[:90].to_csv(tmp_path / "train.csv", index=False)
    table[90:].drop(columns="target").to_csv(tmp_path / "test.csv", index=False)
    table[90:][["id"]].assign(target=0.5).to_csv(tmp_path / "sample_submission.csv", index=False)
    facts = Facts(sample="sample_submission.csv", metric="roc-auc")
    choices = [[Choice("extra trees", 0.75), Choice("words, logistic regression, C=3", 0.25)]]
    script = tmp_path / "code" / "solution.py"
    write_solution(script, facts, choices, 0, 1, 4096, 1000)
    assert "mleredux" not in script.read_text(encoding="utf-8")
    paths = [tmp_path / f"{name}.csv" for name in ("agent", "script")]
    solve(tmp_path, paths[0], facts, choices, seed=0, threads=1, memory_mb=4096, max_rows=1000)
    subprocess.run([sys.executable, "-I", str(script), str(tmp_path), str(paths[1])], check=True, capture_output=True)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    made = pd.read_csv(paths[0])
    assert metric_for("roc-auc", classes=True, labels=False).score(
        table["target"][90:].to_numpy(), np.column_stack([1 - made["target"], made["target"]])
    ) > 0.8  # fmt: skip


def test_exported_modules_use_only_those_before_them_and_share_no_names() -> None:
    seen: set[str] = set()
    names: list[str] = []
    for module in MODULES:
        source = Path(metrics.__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mleredux_agent_baseline."):
                assert (node.module or "").rpartition(".")[2] in seen
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.append(node.name)
            elif isinstance(node, ast.Assign):
                names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        seen.add(module)
    assert len(set(names)) == len(names)
