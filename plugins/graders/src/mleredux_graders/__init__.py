"""Metrics with their checks, each imported when it is used."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.hookspecs import hookimpl
from mleredux.plugins import Ref

mleredux_contract = 1

GRADERS = {
    "accuracy": "classification.accuracy",
    "average-precision": "classification.average_precision",
    "balanced-accuracy": "classification.balanced_accuracy",
    "brier": "classification.brier",
    "cohen-kappa": "classification.cohen_kappa",
    "error-rate": "classification.error_rate",
    "f1": "classification.f1",
    "f1-multilabel": "classification.f1_multilabel",
    "group-log-mae": "regression.group_log_mae",
    "log-loss": "classification.log_loss",
    "mae": "regression.mae",
    "map-at-k": "ranking.map_at_k",
    "mape": "regression.mape",
    "matthews-correlation": "classification.matthews_correlation",
    "mcrmse": "regression.mcrmse",
    "median-absolute-error": "regression.median_absolute_error",
    "mrr": "ranking.mrr",
    "mse": "regression.mse",
    "ndcg-at-k": "ranking.ndcg_at_k",
    "pearson": "regression.correlation",
    "precision": "classification.f1:PRECISION",
    "quadratic-weighted-kappa": "classification.cohen_kappa:QUADRATIC",
    "r2": "regression.r2",
    "recall": "classification.f1:RECALL",
    "rmse": "regression.rmse",
    "rmsle": "regression.rmsle",
    "roc-auc": "classification.roc_auc",
    "spearman": "regression.correlation:SPEARMAN",
}
"""Grader id → module, and the attribute in it where it is not `GRADER`."""


@hookimpl
def mleredux_register_graders() -> Iterable[Ref]:
    """All graders, none of them imported."""
    for name, where in GRADERS.items():
        module, _, attribute = where.partition(":")
        yield Ref(name, f"{__name__}.{module}:{attribute or 'GRADER'}")
