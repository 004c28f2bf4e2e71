"""Where scikit-learn has the metric, ours agrees with it."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux_graders.classification.agreement import accuracy, balanced_accuracy, cohen_kappa, matthews_correlation
from mleredux_graders.classification.curves import average_precision, roc_auc
from mleredux_graders.classification.f1 import f1_multilabel, fbeta
from mleredux_graders.classification.labels import encode
from mleredux_graders.classification.probabilities import log_loss
from mleredux_graders.ranking.lists import ndcg
from mleredux_graders.regression.correlation import pearson, spearman
from mleredux_tables.utf8 import Utf8
from sklearn import metrics

seeds = given(seed=st.integers(0, 100_000))
often = settings(max_examples=20, deadline=None)


def same(ours: float, theirs: Any) -> None:
    assert ours == pytest.approx(float(theirs), abs=1e-9, rel=1e-9)


def label_pair(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    rows = int(rng.integers(5, 60))
    y_true, y_pred = rng.integers(0, 4, rows), rng.integers(0, 5, rows)
    y_true[:2], y_pred[:2] = (0, 1), (0, 1)
    return y_true, y_pred, rng.random(rows) + 0.1


@seeds
@often
def test_metrics_on_labels(seed: int) -> None:
    y_true, y_pred, weight = label_pair(np.random.default_rng(seed))
    ours_true, ours_pred = encode(y_true, y_pred)
    for sample_weight in (None, weight):
        given_weight: dict[str, Any] = {"sample_weight": sample_weight}
        same(accuracy(ours_true, ours_pred, **given_weight), metrics.accuracy_score(y_true, y_pred, **given_weight))
        same(
            balanced_accuracy(ours_true, ours_pred, **given_weight),
            metrics.recall_score(
                y_true, y_pred, average="macro", labels=np.unique(y_true), zero_division=0, **given_weight
            ),
        )
        same(
            matthews_correlation(ours_true, ours_pred, **given_weight),
            metrics.matthews_corrcoef(y_true, y_pred, **given_weight),
        )
        for average in ("micro", "macro", "weighted"):
            for beta, theirs in (
                (1.0, metrics.f1_score),
                (0.0, metrics.precision_score),
                (np.inf, metrics.recall_score),
            ):
                same(
                    fbeta(ours_true, ours_pred, beta=beta, average=average, **given_weight),
                    theirs(y_true, y_pred, average=average, zero_division=0, **given_weight),
                )
            same(
                fbeta(ours_true, ours_pred, beta=0.5, average=average, **given_weight),
                metrics.fbeta_score(y_true, y_pred, beta=0.5, average=average, zero_division=0, **given_weight),
            )
        for weights in ("none", "linear", "quadratic"):
            same(
                cohen_kappa(ours_true, ours_pred, weights=weights, **given_weight),
                metrics.cohen_kappa_score(
                    y_true, y_pred, weights=None if weights == "none" else weights, **given_weight
                ),
            )


@seeds
@often
def test_metrics_on_scores(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(4, 80))
    y_true = rng.integers(0, 2, rows)
    y_true[:2] = 0, 1
    y_score, weight = rng.integers(0, 10, rows) / 10, rng.random(rows) + 0.1
    same(roc_auc(y_true, y_score), metrics.roc_auc_score(y_true, y_score))
    same(roc_auc(y_true, y_score, sample_weight=weight), metrics.roc_auc_score(y_true, y_score, sample_weight=weight))
    same(average_precision(y_true, y_score), metrics.average_precision_score(y_true, y_score))
    same(
        average_precision(y_true, y_score, sample_weight=weight),
        metrics.average_precision_score(y_true, y_score, sample_weight=weight),
    )
    same(log_loss(y_true[:, None], y_score[:, None]), metrics.log_loss(y_true, y_score))
    one_hot = np.eye(4)[rng.integers(0, 4, rows)]
    shares = rng.dirichlet(np.ones(4), rows)
    same(log_loss(one_hot, shares), metrics.log_loss(one_hot, shares))


@seeds
@often
def test_multilabel_f1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    true, predicted = rng.random((12, 5)) < 0.4, rng.random((12, 5)) < 0.4
    true[0] = True
    texts = [Utf8.of_cells([" ".join(np.array(list("abcde"))[row]) for row in side]) for side in (true, predicted)]
    same(f1_multilabel([(texts[0], texts[1])]), metrics.f1_score(true, predicted, average="micro", zero_division=0))
    by_rows = metrics.f1_score(true, predicted, average="samples", zero_division=1)
    same(f1_multilabel([(texts[0], texts[1])], average="samples"), by_rows)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("mae", "mean_absolute_error"),
        ("mse", "mean_squared_error"),
        ("rmse", "root_mean_squared_error"),
        ("mape", "mean_absolute_percentage_error"),
        ("r2", "r2_score"),
        ("median_absolute_error", "median_absolute_error"),
        ("rmsle", "root_mean_squared_log_error"),
    ],
)
@seeds
@often
def test_metrics_on_numbers(module: str, name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y_true, y_pred, weight = rng.exponential(size=(3, int(rng.integers(2, 50)))) + 0.01
    ours = getattr(importlib.import_module("mleredux_graders.regression.errors"), name)
    theirs = getattr(metrics, name)
    same(ours(y_true, y_pred), theirs(y_true, y_pred))
    if module != "median_absolute_error":
        same(ours(y_true, y_pred, sample_weight=weight), theirs(y_true, y_pred, sample_weight=weight))


@seeds
@often
def test_ndcg(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 20))
    y_true, y_score = rng.integers(0, 4, rows).astype(float), rng.integers(0, 6, rows) / 6
    for k in (None, 1, 3, 50):
        same(ndcg(y_true, y_score, k=k), metrics.ndcg_score([y_true], [y_score], k=k))


@seeds
@often
def test_correlations_agree_with_scipy(seed: int) -> None:
    from scipy import stats

    rng = np.random.default_rng(seed)
    rows = int(rng.integers(3, 40))
    x, y = rng.normal(size=rows) * 1e6, rng.integers(0, 5, rows).astype(float)
    y[:2] = 0, 1
    same(pearson(x, y), stats.pearsonr(x, y)[0])
    same(spearman(x, y), stats.spearmanr(x, y)[0])
