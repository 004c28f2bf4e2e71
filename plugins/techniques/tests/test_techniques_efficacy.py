"""Efficacy: what is recommended is carried out, and stands between a naive and a strong choice, or is not judged."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mleredux._core.data import Prepared
from mleredux.errors import MlereduxError
from mleredux_techniques._kit.data.dataset import Dataset, GroupColumn, Instance, load, save
from mleredux_techniques._kit.data.splits import assign_folds, pool
from mleredux_techniques._kit.declaration.grader import carry_out
from mleredux_techniques._kit.declaration.preparation import TRUTH_FILE
from mleredux_techniques._kit.judging.comparison import Choice, judge
from mleredux_techniques._kit.judging.scorer import Scorer, scorer
from mleredux_techniques._kit.vocabulary import encoders, imputers, scalers
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing, Rows, matrices
from mleredux_techniques.cv import document as cv
from mleredux_techniques.cv.document import CvAnalysis
from mleredux_techniques.cv.folds import CannotSplit, folds
from mleredux_techniques.imbalance import document as imbalance
from mleredux_techniques.imbalance.samplers import resample, row_weights
from mleredux_techniques.leakage.document import LeakageAnalysis
from pydantic import TypeAdapter
from sklearn import impute, preprocessing
from technique_documents import TECHNIQUES, perfect
from technique_documents.bases import base_of, rare

Preparer = Callable[[str], Prepared]
RNG = np.random.default_rng(0)
SPLITS = RNG.normal(0.3, 0.02, 5)


@functools.cache
def accuracy() -> Scorer:
    toy = grouped()
    return scorer(toy, base_of(toy))


def judged(naive: Any, strong: Any, given: Any) -> Any:
    choices = (Choice(np.asarray(losses, float), "so") for losses in (naive, strong, given))
    return judge(*choices, overlap=0.25, scorer=accuracy())


@pytest.mark.parametrize(
    ("gain", "score"), [(0.0, 0.0), (-0.1, 0.0), (0.05, 0.5), (0.1, 1.0), (0.2, 1.0)], ids=lambda value: str(value)
)
def test_the_score_is_the_way_from_naive_to_strong(gain: float, score: float) -> None:
    part = judged(SPLITS, SPLITS - 0.1, SPLITS - gain)
    assert part.score == pytest.approx(score)
    assert part.uncertainty == pytest.approx(0.0, abs=1e-6)
    assert part.parts[0].weight == 1.0 and "splits" in part.parts[0].explanation


def test_its_uncertainty_grows_with_the_noise_between_splits() -> None:
    quiet = judged(SPLITS, SPLITS - 0.1, SPLITS - 0.05 + RNG.normal(0, 0.001, 5))
    loud = judged(SPLITS, SPLITS - 0.1, SPLITS - 0.05 + RNG.normal(0, 0.02, 5))
    assert 0 < quiet.uncertainty < 0.05 < loud.uncertainty


def test_where_naive_and_strong_do_not_differ_nothing_is_earned_by_chance() -> None:
    earned = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        earned.append(judged(*rng.normal(0.3, 0.02, (3, 5))).score)
    assert sum(score is None for score in earned) >= 180
    told = judged(SPLITS, SPLITS + 1e-4, SPLITS - 0.1)
    assert (
        told.score is None and told.parts[0].weight == 0 and "do not differ significantly" in told.parts[0].explanation
    )


def test_but_harm_beyond_noise_earns_nothing_there() -> None:
    assert judged(SPLITS, SPLITS, SPLITS + 0.1).score == 0.0
    assert judged(SPLITS, SPLITS, SPLITS + 0.001).score is None


def test_folds_keep_groups_whole_and_classes_alike() -> None:
    classes = np.repeat([0, 1], [80, 20])
    dealt = assign_folds(classes, None, 5, seed=3)
    assert all((classes[dealt == fold] == 1).sum() == 4 for fold in range(5))
    groups = np.repeat(np.arange(20), 5)
    whole = assign_folds(classes, groups, 5, seed=3)
    assert all(len(set(whole[groups == group])) == 1 for group in range(20))
    assert np.array_equal(dealt, assign_folds(classes, None, 5, seed=3))


def processed(train: Any, other: Any, **how: Any) -> tuple[np.ndarray, np.ndarray]:
    """The matrices of columns a, b, … of which the first `len(how)` are treated as said."""
    frames = [pd.DataFrame(part) for part in (train, other)]
    kinds = {name: "text" if frames[0][name].dtype == object else "number" for name in frames[0]}
    codes = np.arange(len(frames[0])) % 2
    return matrices(Rows(*frames, kinds, codes, True, 0, how))  # type: ignore[arg-type]


def test_scalers_do_what_scikit_learn_does() -> None:
    train, other = np.exp(RNG.normal(0, 1, 400)), np.exp(RNG.normal(0, 0.8, 100))
    normal = {"output_distribution": "normal", "n_quantiles": 100}
    for name, options in (
        ("StandardScaler", {}),
        ("MinMaxScaler", {}),
        ("MaxAbsScaler", {}),
        ("RobustScaler", {}),
        ("QuantileTransformer", normal),
        ("PowerTransformer", {}),
        ("PowerTransformer", {"method": "box-cox"}),
    ):
        theirs = getattr(preprocessing, name)(**options).fit(train[:, None])
        scaler: Any = TypeAdapter(scalers.Scaler).validate_python({"name": name, **options})
        inside = (other > train.min()) & (other < train.max())
        ours = processed({"a": train}, {"a": other}, a=Preprocessing(scaler=scaler))[1]
        assert np.abs(ours - theirs.transform(other[:, None]))[inside].max() < 1e-9, name


def test_scalers_take_what_is_constant_or_not_positive() -> None:
    train, other = {"a": np.arange(9.0) - 4, "b": np.ones(9)}, {"a": np.array([-9.0, 9.0]), "b": np.array([1.0, 7.0])}
    for scaler in (
        scalers.Log1p(name="log1p"),
        scalers.PowerTransformer(name="PowerTransformer", method="box-cox"),
        scalers.QuantileTransformer(name="QuantileTransformer"),
    ):
        how = Preprocessing(scaler=scaler)
        ours = processed(train, other, a=how, b=how)
        assert [part.shape[1] for part in ours] == [2, 2]
        assert all(np.isfinite(part).all() for part in ours)


def test_imputers_do_what_scikit_learn_does() -> None:
    train, other = RNG.normal(0, 1, (120, 3)), RNG.normal(0, 1, (40, 3))
    train[:, 1] += 2 * train[:, 0]
    whole = train[:, 1].copy()
    train[::4, 1] = np.nan
    frames = [pd.DataFrame(part, columns=list("abc")) for part in (train, other)]
    keep, mean = imputers.SimpleImputer(name="SimpleImputer"), float(np.nanmean(train[:, 1]))

    def filled(imputation: Any) -> np.ndarray:
        return imputers.fill(*frames, {"a": keep, "b": imputation, "c": keep}, seed=0)[0]["b"].to_numpy()

    assert np.allclose(filled(keep)[::4], mean)
    marked = Preprocessing(imputers.SimpleImputer(name="SimpleImputer", add_indicator=True))
    told, _ = processed(*frames, b=marked)
    assert told.shape == (120, 4) and any(np.array_equal(column, np.isnan(train[:, 1])) for column in told.T)
    jointly = filled(imputers.IterativeImputer(name="IterativeImputer"))
    assert np.abs(jointly[::4] - whole[::4]).mean() < 0.6 * np.abs(mean - whole[::4]).mean() + 0.6
    near = filled(imputers.KNNImputer(name="KNNImputer"))
    spread = np.nanstd(train, axis=0)
    theirs = impute.KNNImputer().fit_transform((train - np.nanmean(train, axis=0)) / spread)
    assert np.allclose(near, theirs[:, 1] * spread[1] + mean)


def test_encoders_learn_from_training_rows_alone() -> None:
    train, other = np.array(["a", "b", "a", "c"] * 10, object), np.array(["a", "z"], object)
    codes = np.array([1, 0, 1, 0] * 10)

    def encode(encoding: Any, train: Any = train, other: Any = other) -> tuple[np.ndarray, np.ndarray]:
        frames = pd.DataFrame({"a": train}), pd.DataFrame({"a": other})
        return matrices(Rows(*frames, {"a": "text"}, codes, True, 0, {"a": Preprocessing(encoding=encoding)}))

    hot = encode(encoders.OneHotEncoder(name="OneHotEncoder"))
    assert hot[0].shape == (40, 3) and hot[1].tolist()[1] == [0, 0, 0]
    capped = encode(encoders.OneHotEncoder(name="OneHotEncoder", max_categories=2))
    assert capped[0].shape == (40, 2) and capped[0].sum() == 40
    ordered = encoders.OrdinalEncoder(name="OrdinalEncoder", categories=["c", "b", "a"])
    ranks = encode(ordered)[0][:4, 0]
    assert ranks[0] > ranks[1] > ranks[3]
    means = encode(encoders.TargetEncoder(name="TargetEncoder"))[0][:4, 0]
    assert means[0] > means[1]
    counts = encode(encoders.CountEncoder(name="CountEncoder"))
    assert counts[0][0, 0] > counts[0][1, 0] > counts[1][1, 0]
    dates = np.array(["2021-03-04 05:00"] * 40, object)
    assert encode(encoders.DatetimeEncoder(name="DatetimeEncoder"), dates, dates[:2])[0].shape == (40, 6)
    words = encoders.TfidfVectorizer(name="TfidfVectorizer")
    assert encode(words, np.array(["red hat", "blue"] * 20, object), other)[0].shape == (40, 3)
    assert encode(words, np.array(["-", "!"] * 20, object), other)[0].shape == (40, 1), "no words: an empty column"


def test_class_weights_and_samplers_balance_classes() -> None:
    y = np.repeat([0, 1], [90, 10])
    x = RNG.normal(0, 1, (100, 2))
    weights = row_weights(imbalance.ClassWeight(name="class_weight"), y)
    assert weights[y == 0].sum() == pytest.approx(weights[y == 1].sum())
    given = imbalance.ClassWeight(name="class_weight", class_weight={"yes": 5.0})
    assert set(row_weights(given, y, ("no", "yes"))) == {1.0, 5.0}
    for name, rows in (("RandomOverSampler", 180), ("SMOTE", 180), ("RandomUnderSampler", 20)):
        sampler: Any = TypeAdapter(imbalance.ImbalanceStrategy).validate_python({"name": name})
        more, classes = resample(sampler, x, y, 0)
        assert len(more) == rows and (classes == 1).mean() == 0.5
    refused = imbalance.RandomSampler(name="RandomOverSampler", sampling_strategy=0.05)
    assert len(resample(refused, x, y, 0)[0]) == 100
    few = np.repeat([0, 1], [98, 2])
    assert len(resample(imbalance.SMOTE(name="SMOTE"), x, few, 0)[0]) == 196


@pytest.mark.parametrize(
    "method",
    [
        {"name": "KFold", "shuffle": False},
        {"name": "StratifiedKFold"},
        {"name": "RepeatedStratifiedKFold", "n_repeats": 2},
        {"name": "GroupKFold", "groups": {"column": "who", "separator": "_"}},
        {"name": "StratifiedGroupKFold", "groups": {"column": "who", "separator": "_"}},
        {"name": "TimeSeriesSplit", "time_column": "when", "n_splits": 3},
        {"name": "ShuffleSplit", "n_splits": 2},
    ],
    ids=lambda method: method["name"],
)
def test_methods_split_as_they_say(method: dict[str, Any]) -> None:
    frame = pd.DataFrame({"who": [f"g{number // 4}_{number}" for number in range(60)], "when": RNG.permutation(60)})
    target = np.tile([0, 1, 0, 0], 15)
    made = cv.CvAnalysis.model_construct(method=_method(method)).method
    for rest, held in folds(made, frame, target, classes=True, seed=0):
        assert not set(rest) & set(held) and len(held)
        if "groups" in method:
            names = frame["who"].str.partition("_")[0].to_numpy()
            assert not set(names[rest]) & set(names[held])
        if method["name"] == "TimeSeriesSplit":
            assert frame["when"].to_numpy()[rest].max() < frame["when"].to_numpy()[held].min()
    lost = {**method, "time_column": "then"} if "time_column" in method else None
    if lost:
        with pytest.raises(CannotSplit, match="no column 'then'"):
            folds(_method(lost), frame, target, classes=True, seed=0)


def _method(content: dict[str, Any]) -> Any:
    return TypeAdapter(cv.CvMethod).validate_python(content)


def grouped() -> Dataset:
    """Many rows of each of few things: what is learned of a thing by heart says nothing of others."""
    rng = np.random.default_rng(7)
    things = np.repeat(np.arange(80), 8)
    place = rng.normal(0, 1, (80, 3))
    x = place[things] + rng.normal(0, 0.05, (640, 3))
    y = np.where(rng.random(80)[things] < 0.5, "no", "yes").astype(object)
    columns = {f"x{number}": x[:, number] for number in range(3)}
    frame = pd.DataFrame({"thing": [f"t{one}" for one in things], **columns, "y": y})
    held = things >= 56
    return Dataset(
        task="grouped", problem="binary", target="y", targets=("y",), ids=(), features=("thing", "x0", "x1", "x2"),
        train=frame[~held].reset_index(drop=True), test=frame[held].reset_index(drop=True),
        kinds={"thing": "text", "x0": "number", "x1": "number", "x2": "number"}, group=GroupColumn("thing"),
    )  # fmt: skip


def measure(technique: str, document: Any, dataset: Dataset, truth: Any = None) -> Any:
    return carry_out(TECHNIQUES[technique], document, Instance(dataset, truth or {}, base_of(dataset)))


def test_a_leaky_grouping_is_caught_by_its_optimism() -> None:
    dataset = grouped()
    key = {"column": "thing", "separator": None}
    told = {}
    for method in ({"name": "GroupKFold", "groups": key}, {"name": "StratifiedKFold"}):
        part = measure("cv", CvAnalysis.model_construct(method=_method(method)), dataset)
        told[method["name"]] = part.score, part.parts[-1].value
    assert told["GroupKFold"][0] > 0.8
    assert told["StratifiedKFold"][0] < 0.2
    assert told["StratifiedKFold"][1] > told["GroupKFold"][1] + 0.1


@pytest.mark.parametrize(
    ("metric", "direction", "right", "wrong"),
    [
        ("log-loss", "minimize", ["none"], ["class_weight", "RandomOverSampler", "RandomUnderSampler"]),
        ("balanced-accuracy", "maximize", ["TunedThresholdClassifierCV"], ["none"]),
    ],
)
def test_strategies_are_judged_by_the_metric_of_the_competition(
    metric: str, direction: Any, right: list[str], wrong: list[str]
) -> None:
    dataset = replace(rare(), metric=metric, direction=direction)
    scores = {}
    for name in (*right, *wrong):
        strategy: Any = TypeAdapter(imbalance.ImbalanceStrategy).validate_python({"name": name})
        document = imbalance.ImbalanceAnalysis.model_construct(strategies=[strategy])
        part = measure("imbalance", document, dataset)
        assert metric in part.parts[0].explanation
        scores[name] = part.score
    assert all(scores[name] > 0.9 for name in right) and all(scores[name] < 0.4 for name in wrong), scores


def test_rows_that_are_dropped_without_need_get_a_share_of_their_effect() -> None:
    """A threshold does as much for a balanced accuracy, with all rows."""
    dataset = replace(rare(), metric="balanced-accuracy", direction="maximize")
    strategy = imbalance.RandomSampler(name="RandomUnderSampler")
    part = measure("imbalance", imbalance.ImbalanceAnalysis.model_construct(strategies=[strategy]), dataset)
    assert 0.3 < part.score <= 0.4 and "An unnecessary action is worth 0.4 of the credit." in part.parts[0].explanation


@pytest.mark.parametrize(
    ("metric", "form"), [("roc-auc", "scores"), ("f1", "labels"), ("quadratic-weighted-kappa", "labels")]
)
def test_metrics_get_the_predictions_that_they_ask_for(metric: str, form: str) -> None:
    dataset = replace(rare(), metric=metric)
    found = scorer(dataset, base_of(dataset))
    assert (found.form, found.substitute, found.perfect) == (form, False, pytest.approx(1.0))
    with pytest.warns(DeprecationWarning, match="Scorer.asked is now form"):
        assert found.asked == form


@pytest.mark.parametrize("metric", ["f1", "accuracy", "log-loss", "roc-auc"])
@pytest.mark.parametrize("names", [("0", "1"), ("False", "True"), ("1.50", "2"), ("NA", "ok"), ('a, "b"', "07")])
def test_scores_in_memory_are_those_of_files(metric: str, names: tuple[str, str]) -> None:
    """Labels are read from a CSV as whole numbers, as true and false, as fractions, as missing, or as text."""
    dataset = replace(rare(), metric=metric)
    one = replace(scorer(dataset, base_of(dataset)), names=names)
    other = replace(one)
    vars(other)["_grader"] = one._grader.model_copy(update={"score_tables": None})
    rng = np.random.default_rng(0)
    codes, told = rng.integers(0, 2, 60), rng.dirichlet([1.0, 1.0], 60)

    def score(judge: Scorer) -> float | str:
        try:
            return judge.score(dataset.train.head(60), codes, told)
        except MlereduxError as error:
            return error.message

    assert score(one) == score(other)
    assert one._texts  # the truth is labels


def test_a_metric_that_is_not_of_rows_is_substituted_and_named() -> None:
    dataset = replace(rare(), metric="coco-map")
    found = scorer(dataset, base_of(dataset))
    assert found.substitute and "log-loss (lower is better); the competition's own metric" in found.title


def test_equal_documents_and_data_give_equal_results() -> None:
    document = CvAnalysis.model_construct(method=_method({"name": "StratifiedKFold"}))
    first = measure("cv", document, grouped())
    assert measure("cv", document, grouped()) == first


def test_large_tables_are_sampled_and_the_sample_is_said() -> None:
    dataset = grouped()
    one = pool(dataset, max_rows=200)
    assert len(one.frame) <= 200 and "of 448 training rows" in one.sample
    sizes = one.frame["thing"].value_counts()
    assert set(sizes) == {8}, "groups are drawn completely"


def test_leaks_left_out_count_against_honest_columns_left_out(prepared: Preparer) -> None:
    private = prepared("leakage+planted-public-1@wine").private
    dataset = load(private)
    best = perfect("leakage", private)
    assert isinstance(best, LeakageAnalysis)
    truth = json.loads((private / TRUTH_FILE).read_bytes())
    leaks = truth["leaks"]
    if leaks:
        assert measure("leakage", best, dataset, truth).score == 1.0
    nothing = best.model_copy(update={"risks": []})
    assert measure("leakage", nothing, dataset, truth).score == (0.0 if leaks else None)
    every = {
        "kind": "copy",
        "columns": list(dataset.features)[:50],
        "strength": 1.0,
        "mitigation": {"name": "drop_columns"},
    }
    rows = {"kind": "duplicate_rows", "columns": [], "strength": 0.1, "mitigation": {"name": "drop_duplicates"}}
    content = {**best.model_dump(), "shared_rows": 5, "risks": [every, rows]}
    wild = LeakageAnalysis.model_validate(content)
    assert measure("leakage", wild, dataset, truth).score == 0.0


def test_texts_with_bare_carriage_returns_keep_their_rows(tmp_path: Path) -> None:
    dataset = grouped()
    dataset.train.loc[3, "thing"], dataset.train.loc[4, "thing"] = "two\rlines", np.nan
    save(dataset, tmp_path)
    again = load(tmp_path)
    pd.testing.assert_frame_equal(again.train, dataset.train, check_dtype=False)
    assert pd.isna(again.train.loc[4, "thing"])
