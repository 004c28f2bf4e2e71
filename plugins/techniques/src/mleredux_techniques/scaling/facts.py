"""Facts of `scaling`: location, spread and shape of the numeric features."""

from __future__ import annotations

from typing import Any

import numpy as np
from mleredux.errors import NotApplicable

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.judging.marks import (
    claimed,
    close,
    component,
    counted,
    facts_of,
    finding,
    informed,
    listing,
    shortened,
    versus,
)
from mleredux_techniques._kit.judging.results import Facts
from mleredux_techniques.scaling.document import ScalingAnalysis

SKEWED = 1.0
OUTLYING = 0.05
BAND = 0.1
"""Within this share of a threshold, either answer is correct."""
EVEN, WILD = 0.12, 3.0
NORMAL_IQR = 1.349
"""Interquartile range of the normal distribution in standard deviations."""
INDIFFERENT = ("decision_tree", "gradient_boosted_trees", "random_forest")


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return mean, standard deviation and shape of each numeric feature of the training table.

    Raises:
        NotApplicable: There is no such feature.
    """
    features: dict[str, dict[str, Any]] = {}
    for name in dataset.of_kind("number"):
        values = dataset.train[name].dropna().to_numpy(dtype=float)
        if len(np.unique(values)) > 2:
            features[name] = _describe(values)
    if not features:
        raise NotApplicable(
            f"scaling does not apply to {dataset.task}: its training table has no numeric feature with more than two "
            "values."
        )
    deviations = [feature["std"] for feature in features.values()]
    return {"features": features, "spread": max(deviations) / min(deviations)}


def _describe(values: np.ndarray[Any, Any]) -> dict[str, Any]:
    mean, std = float(values.mean()), float(values.std())
    skewness = float((((values - mean) / std) ** 3).mean()) if std else 0.0
    first, low, middle, high, last = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
    reach = 1.5 * (high - low)
    even = bool(abs(last + first - 2 * middle) < EVEN * (last - first))
    wild = bool(std > WILD * (high - low) / NORMAL_IQR)
    return {
        "mean": mean,
        "std": std,
        "skewness": skewness,
        "outlying": float(((values < low - reach) | (values > high + reach)).mean()),
        "open": [name for name, is_open in (("skewness", even), ("outlying", wild)) if is_open],
    }


def _verdict(feature: dict[str, Any], figure: str, threshold: float) -> bool | None:
    """Whether a figure is above a threshold; None if it is too close, or a few far values alone decide it."""
    value = abs(feature[figure])
    if abs(value - threshold) <= BAND * threshold:
        return None
    # far values make a skewness larger, and are too few to be outliers
    apparent = value > threshold if figure == "skewness" else value < threshold
    return None if apparent and figure in feature.get("open", ()) else bool(value > threshold)


def assess(document: ScalingAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with the columns."""
    true: dict[str, dict[str, Any]] = truth["features"]
    given = {feature.column: feature for feature in document.features}
    right = [
        name
        for name, feature in given.items()
        if name in true
        and abs(feature.mean - true[name]["mean"]) <= 0.02 * true[name]["std"]
        and close(feature.std, true[name]["std"]) == 1
    ]
    told = listing(f"{name} {fact['mean']:.4g} ± {fact['std']:.4g}" for name, fact in true.items())
    parts = [
        component(
            "mean and standard deviation",
            0.2,
            2 * len(right) / (len(given) + len(true)),
            {
                "right": len(right),
                "given": len(given),
                "true": shortened({name: [round(f["mean"], 6), round(f["std"], 6)] for name, f in true.items()}),
            },
            f"Mean ± standard deviation: {told}. {len(right)} of {len(true)} were correct.",
        )
    ]
    for field, figure, threshold, described in (
        ("skewed", "skewness", SKEWED, "are skewed (skewness beyond 1)"),
        ("outliers", "outlying", OUTLYING, "have more than 5 % outliers"),
    ):
        verdicts = {name: _verdict(feature, figure, threshold) for name, feature in true.items()}
        are = {name for name, verdict in verdicts.items() if verdict}
        open_ = {name for name, verdict in verdicts.items() if verdict is None}
        said = {name for name, feature in given.items() if getattr(feature, field)}
        sure, unmeasured = (said & set(right)) - open_, len(said - set(right))
        others = len(true) - len(are) - len(open_) + unmeasured
        parts.append(
            finding(
                field,
                0.35,
                informed(len(sure & are), len(sure - are) + unmeasured, len(are), others),
                versus(sorted(said)[:50], {name: round(true[name][figure], 4) for name in sorted(are)[:50]}),
                f"{len(are)} features {described}: {listing(sorted(are))}.",
                true=len(are),
                given=len(sure) + unmeasured,
            )
        )
    told = f"The largest standard deviation is {truth['spread']:.4g} times the smallest."
    parts.append(counted("spread", 0.06, document.spread, round(truth["spread"], 4), told, 0.05))
    told = "Trees split at thresholds, so only the order of values matters; they are:"
    trees = claimed("models that don't need it", 0.04, document.not_needed_for, INDIFFERENT, told, decides=False)
    return facts_of([*parts, trees])
