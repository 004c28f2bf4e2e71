"""Metrics with their validation, each imported when used."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2

GRADERS = {
    "accuracy": "classification.agreement:ACCURACY",
    "average-precision": "classification.curves:AVERAGE_PRECISION",
    "average-precision-boxes": "detection.average_precision_boxes",
    "balanced-accuracy": "classification.agreement:BALANCED_ACCURACY",
    "bias-roc-auc": "classification.curves:BIAS_ROC_AUC",
    "brier": "classification.probabilities:BRIER",
    "coco-map": "detection.coco_map",
    "cohen-kappa": "classification.agreement:COHEN_KAPPA",
    "dice": "segmentation.masks:DICE",
    "dice-hausdorff": "segmentation.masks:DICE_HAUSDORFF",
    "error-rate": "classification.agreement:ERROR_RATE",
    "exact-match": "text.strings:EXACT_MATCH",
    "f1": "classification.f1",
    "f1-multilabel": "classification.f1:MULTILABEL",
    "group-log-mae": "regression.errors:GROUP_LOG_MAE",
    "haversine-percentiles": "physics.angles:HAVERSINE_PERCENTILES",
    "kendall-tau-pooled": "ranking.lists:KENDALL_TAU_POOLED",
    "kl-divergence": "classification.probabilities:KL_DIVERGENCE",
    "laplace-log-likelihood": "physics.laplace_log_likelihood",
    "levenshtein": "text.strings:LEVENSHTEIN",
    "located-f1": "detection.located_f1",
    "log-loss": "classification.probabilities:LOG_LOSS",
    "lwlrap": "audio.lwlrap",
    "mae": "regression.errors:MAE",
    "map-at-k": "ranking.lists:MAP_AT_K",
    "map-boxes-3d": "detection.map_boxes_3d",
    "mape": "regression.errors:MAPE",
    "mask-fbeta": "segmentation.masks:MASK_FBETA",
    "mask-precision": "segmentation.masks:MASK_PRECISION",
    "matthews-correlation": "classification.agreement:MATTHEWS_CORRELATION",
    "mcrmse": "regression.errors:MCRMSE",
    "mean-angular-error": "physics.angles:MEAN_ANGULAR_ERROR",
    "median-absolute-error": "regression.errors:MEDIAN_ABSOLUTE_ERROR",
    "mrr": "ranking.lists:MRR",
    "mse": "regression.errors:MSE",
    "natural-questions-f1": "answering.natural_questions_f1",
    "ndcg-at-k": "ranking.lists:NDCG_AT_K",
    "pearson": "regression.correlation",
    "precision": "classification.f1:PRECISION",
    "probabilistic-f1": "classification.f1:PROBABILISTIC",
    "quadratic-weighted-kappa": "classification.agreement:QUADRATIC",
    "r2": "regression.errors:R2",
    "recall": "classification.f1:RECALL",
    "rmse": "regression.errors:RMSE",
    "rmsle": "regression.errors:RMSLE",
    "roc-auc": "classification.curves:ROC_AUC",
    "spearman": "regression.correlation:SPEARMAN",
    "weighted-log-loss": "classification.probabilities:WEIGHTED_LOG_LOSS",
    "weighted-roc-auc": "classification.curves:WEIGHTED_ROC_AUC",
    "word-jaccard": "text.strings:WORD_JACCARD",
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
