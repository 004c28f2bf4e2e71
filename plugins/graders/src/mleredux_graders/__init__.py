"""Metrics with their validation, each imported when used."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2

GRADERS = {
    "accuracy": "classification.accuracy",
    "average-precision": "classification.average_precision",
    "average-precision-boxes": "detection.average_precision_boxes",
    "balanced-accuracy": "classification.balanced_accuracy",
    "bias-roc-auc": "classification.bias_roc_auc",
    "brier": "classification.brier",
    "coco-map": "detection.coco_map",
    "cohen-kappa": "classification.cohen_kappa",
    "dice": "segmentation.dice",
    "dice-hausdorff": "segmentation.dice_hausdorff",
    "error-rate": "classification.error_rate",
    "exact-match": "text.exact_match",
    "f1": "classification.f1",
    "f1-multilabel": "classification.f1_multilabel",
    "group-log-mae": "regression.group_log_mae",
    "haversine-percentiles": "physics.haversine_percentiles",
    "kendall-tau-pooled": "ranking.kendall_tau_pooled",
    "kl-divergence": "classification.kl_divergence",
    "laplace-log-likelihood": "physics.laplace_log_likelihood",
    "levenshtein": "text.levenshtein",
    "located-f1": "detection.located_f1",
    "log-loss": "classification.log_loss",
    "lwlrap": "audio.lwlrap",
    "mae": "regression.mae",
    "map-at-k": "ranking.map_at_k",
    "map-boxes-3d": "detection.map_boxes_3d",
    "mape": "regression.mape",
    "mask-fbeta": "segmentation.mask_fbeta",
    "mask-precision": "segmentation.mask_precision",
    "matthews-correlation": "classification.matthews_correlation",
    "mcrmse": "regression.mcrmse",
    "mean-angular-error": "physics.mean_angular_error",
    "median-absolute-error": "regression.median_absolute_error",
    "mrr": "ranking.mrr",
    "mse": "regression.mse",
    "natural-questions-f1": "answering.natural_questions_f1",
    "ndcg-at-k": "ranking.ndcg_at_k",
    "pearson": "regression.correlation",
    "precision": "classification.f1:PRECISION",
    "probabilistic-f1": "classification.probabilistic_f1",
    "quadratic-weighted-kappa": "classification.cohen_kappa:QUADRATIC",
    "r2": "regression.r2",
    "recall": "classification.f1:RECALL",
    "rmse": "regression.rmse",
    "rmsle": "regression.rmsle",
    "roc-auc": "classification.roc_auc",
    "spearman": "regression.correlation:SPEARMAN",
    "weighted-log-loss": "classification.weighted_log_loss",
    "weighted-roc-auc": "classification.weighted_roc_auc",
    "word-jaccard": "text.word_jaccard",
}
"""Grader id → module, and the attribute in it unless it is `GRADER`."""


@hookimpl
def mleredux_register_graders() -> Iterable[Ref]:
    """Register all graders without importing any of them."""
    for name, where in GRADERS.items():
        module, _, attribute = where.partition(":")
        yield Ref(name, f"{__name__}.{module}:{attribute or 'GRADER'}")


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the implementation of `mleredux grade --metric`."""
    return [Ref("grade metric", f"{__name__}.command:command", {"title": "Grade two files with a metric."})]
