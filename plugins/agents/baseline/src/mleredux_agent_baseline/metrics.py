"""Metrics on the agent's own folds: the task's metric if it is a common one, else a similar metric.

Classification models always return class probabilities of shape (rows, classes); labels are derived from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import metrics as sk

Array = np.ndarray[Any, Any]

NUMBER_METRICS = (
    "rmse", "mse", "rmsle", "msle", "mae", "median-absolute-error", "mape", "smape", "r2", "mcrmse", "pearson",
    "spearman", "mean-columnwise-spearman", "laplace-log-likelihood", "group-log-mae", "mean-angular-error", "quantile",
    "haversine-percentiles",
)  # fmt: skip
PROBABILITY_METRICS = (
    "roc-auc", "weighted-roc-auc", "bias-roc-auc", "log-loss", "weighted-log-loss", "brier", "average-precision",
    "kl-divergence", "probabilistic-f1", "gini", "lwlrap",
)  # fmt: skip
LABEL_METRICS = (
    "accuracy", "balanced-accuracy", "error-rate", "f1", "f1-macro", "f1-multilabel", "matthews-correlation",
    "quadratic-weighted-kappa", "cohen-kappa", "exact-match",
)  # fmt: skip
ORDINAL_METRICS = ("quadratic-weighted-kappa",)
LOGARITHMIC_METRICS = ("rmsle", "msle", "group-log-mae")


@dataclass(frozen=True)
class Metric:
    """A metric on held-out folds.

    Attributes:
        score: `score(y, prediction)` in the metric's own unit; `y` are class codes or numbers.
        lower_is_better: Whether lower values of `score` are better.
    """

    name: str
    score: Callable[[Array, Array], float]
    lower_is_better: bool

    def loss(self, y: Array, prediction: Array) -> float:
        """Return the score, negated if necessary so that lower is better; infinity if it can't be computed."""
        value = self.score(y, prediction)
        if not np.isfinite(value):
            return float("inf")
        return value if self.lower_is_better else -value


def metric_for(name: str, *, classes: bool, labels: bool) -> Metric:
    """Return the task's metric, or the most similar known metric.

    Args:
        classes: Whether the target has classes (else numbers).
        labels: Whether labels are submitted (else probabilities).
    """
    table = _CLASS if classes else _NUMBER
    if name in table:
        return Metric(name, *table[name])
    if not classes:
        stand_in = "rmse"
    elif name.startswith("f1"):
        stand_in = "f1-macro"
    elif name.endswith("roc-auc"):
        stand_in = "roc-auc"
    else:
        stand_in = "accuracy" if labels else "log-loss"
    return Metric(stand_in, *table[stand_in])


def _log_loss(y: Array, p: Array) -> float:
    kept = np.clip(p, 1e-15, 1)
    return float(-np.mean(np.log(kept[np.arange(len(y)), y] / kept.sum(axis=1))))


def _roc_auc(y: Array, p: Array) -> float:
    if len(np.unique(y)) < 2:
        return float("nan")
    if p.shape[1] == 2:
        return float(sk.roc_auc_score(y, p[:, 1]))
    present = np.unique(y)
    return float(np.mean([sk.roc_auc_score(y == code, p[:, code]) for code in present]))


def _average_precision(y: Array, p: Array) -> float:
    return float(np.mean([sk.average_precision_score(y == code, p[:, code]) for code in np.unique(y) if code]))


def _on_labels(score: Callable[..., float], **options: Any) -> Callable[[Array, Array], float]:
    return lambda y, p: float(score(y, p.argmax(axis=1), **options))


def _kappa(y: Array, p: Array) -> float:
    return float(sk.cohen_kappa_score(y, nearest_code(p), weights="quadratic"))


def _f1(y: Array, p: Array) -> float:
    average = "binary" if p.shape[1] == 2 else "macro"
    return float(sk.f1_score(y, p.argmax(axis=1), average=average, zero_division=0))


def nearest_code(p: Array) -> Array:
    """Return the code that is nearest to the expected value, for ordered classes."""
    return np.asarray(np.rint(p @ np.arange(p.shape[1])), dtype=int)


def _rmse(y: Array, p: Array) -> float:
    """Return the RMSE per column, averaged over columns."""
    return float(np.mean(np.sqrt(np.mean((y - p) ** 2, axis=0))))


def _correlation(y: Array, p: Array) -> float:
    if np.std(p) == 0 or np.std(y) == 0:
        return float("nan")
    return float(np.corrcoef(y.ravel(), p.ravel())[0, 1])


def _spearman(y: Array, p: Array) -> float:
    import pandas as pd

    return _correlation(pd.Series(y.ravel()).rank().to_numpy(), pd.Series(p.ravel()).rank().to_numpy())


_Scored = tuple[Callable[[Array, Array], float], bool]

_CLASS: dict[str, _Scored] = {
    "log-loss": (_log_loss, True),
    "roc-auc": (_roc_auc, False),
    "average-precision": (_average_precision, False),
    "brier": (lambda y, p: float(np.mean(np.sum((np.eye(p.shape[1])[y] - p) ** 2, axis=1))), True),
    "accuracy": (_on_labels(sk.accuracy_score), False),
    "error-rate": (_on_labels(sk.zero_one_loss), True),
    "balanced-accuracy": (_on_labels(sk.balanced_accuracy_score), False),
    "matthews-correlation": (_on_labels(sk.matthews_corrcoef), False),
    "f1": (_f1, False),
    "f1-macro": (_on_labels(sk.f1_score, average="macro", zero_division=0), False),
    "quadratic-weighted-kappa": (_kappa, False),
}

_NUMBER: dict[str, _Scored] = {
    "rmse": (_rmse, True),
    "mcrmse": (_rmse, True),
    "mse": (lambda y, p: float(np.mean((y - p) ** 2)), True),
    "rmsle": (lambda y, p: _rmse(np.log1p(np.maximum(y, 0)), np.log1p(np.maximum(p, 0))), True),
    "mae": (lambda y, p: float(np.mean(np.abs(y - p))), True),
    "mape": (lambda y, p: float(np.mean(np.abs(y - p) / np.maximum(np.abs(y), 1e-9))), True),
    "smape": (lambda y, p: float(np.mean(2 * np.abs(y - p) / np.maximum(np.abs(y) + np.abs(p), 1e-9))), True),
    "r2": (lambda y, p: float(sk.r2_score(y, p)), False),
    "pearson": (_correlation, False),
    "spearman": (_spearman, False),
}
