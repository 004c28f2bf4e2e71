"""Scaling: location, spread and shape of the numeric features, and the value of scalers.

Naive: StandardScaler on every number, regardless of its distribution. Strong: the best of four plans on the training
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mleredux.models.formats import plain

from mleredux_techniques._kit.data.association import skewness
from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance, refusal
from mleredux_techniques._kit.judging.marks import Sheet, close, informed, listing
from mleredux_techniques._kit.judging.study import OfColumns, Treatments
from mleredux_techniques._kit.vocabulary import scalers
from mleredux_techniques.scaling.document import ScalingAnalysis

SKEWED = 1.0
OUTLYING = 0.05
BAND = 0.1
"""Within this share of a threshold, either answer is accepted."""
EVEN, WILD = 0.12, 3.0
NORMAL_IQR = 1.349
"""Interquartile range of the normal distribution, in standard deviations."""
INDIFFERENT = ("decision_tree", "gradient_boosted_trees", "random_forest")


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return mean, standard deviation and shape of each numeric feature of the training table.

    Raises:
        NotApplicable: There are no numeric features.
    """
    features: dict[str, dict[str, Any]] = {}
    for name in dataset.of_kind("number"):
        values = dataset.train[name].dropna().to_numpy(dtype=float)
        if len(np.unique(values)) > 2:
            features[name] = _describe(values)
    if not features:
        raise refusal(dataset, "scaling", "its training table has no numeric feature with more than two values")
    deviations = [feature["std"] for feature in features.values()]
    return {"features": features, "spread": max(deviations) / min(deviations)}


def _describe(values: Array) -> dict[str, Any]:
    mean, std = float(values.mean()), float(values.std())
    first, low, middle, high, last = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
    reach = 1.5 * (high - low)
    even = bool(abs(last + first - 2 * middle) < EVEN * (last - first))
    wild = bool(std > WILD * (high - low) / NORMAL_IQR)
    return {
        "mean": mean,
        "std": std,
        "skewness": skewness(values),
        "outlying": float(((values < low - reach) | (values > high + reach)).mean()),
        "open": [name for name, is_open in (("skewness", even), ("outlying", wild)) if is_open],
    }


def _verdict(feature: dict[str, Any], figure: str, threshold: float) -> bool | None:
    """Return whether a figure is above a threshold; None if it is too close, or if a few far values alone decide."""
    value = abs(feature[figure])
    if abs(value - threshold) <= BAND * threshold:
        return None
    # far values increase the skewness, but are too few to count as outliers
    apparent = value > threshold if figure == "skewness" else value < threshold
    return None if apparent and figure in feature.get("open", ()) else bool(value > threshold)


def mark(sheet: Sheet, document: ScalingAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with the columns."""
    true: dict[str, dict[str, Any]] = truth["features"]
    features = {feature.column: feature for feature in document.features}
    right = {
        name
        for name in features.keys() & true
        if abs(features[name].mean - true[name]["mean"]) <= 0.02 * true[name]["std"]
        and close(features[name].std, true[name]["std"]) == 1
    }
    figures = {name: [round(fact["mean"], 6), round(fact["std"], 6)] for name, fact in true.items()}
    listed = listing(f"{name} {plain(fact['mean'], 4)} ± {plain(fact['std'], 4)}" for name, fact in true.items())
    sheet.measured("mean and standard deviation", right, features, figures, listed=listed)
    for field, figure, threshold in (("skewed", "skewness", SKEWED), ("outliers", "outlying", OUTLYING)):
        verdicts = {name: _verdict(feature, figure, threshold) for name, feature in true.items()}
        are = {name for name, verdict in verdicts.items() if verdict}
        open_ = {name for name, verdict in verdicts.items() if verdict is None}
        claimed = {name for name, feature in features.items() if getattr(feature, field)}
        sure, unmeasured = (claimed & right) - open_, len(claimed - right)
        others = len(true) - len(are) - len(open_) + unmeasured
        score = informed(len(sure & are), len(sure - are) + unmeasured, len(are), others)
        known = {name: round(true[name][figure], 4) for name in sorted(are)}
        counts = len(are), len(sure) + unmeasured
        decides = sum(counts) > 0 and (others > 0 or score < 1)  # if all features belong, naming all shows nothing
        sheet.mark(field, score, sorted(claimed), known, of=counts, listed=listing(sorted(are)), decides=decides)
    sheet.number("spread", document.spread, round(truth["spread"], 4), spread=truth["spread"])
    sheet.claims("models that don't need it", document.not_needed_for, INDIFFERENT)


class Scalings(OfColumns):
    """A scaler for each numeric feature; unlisted ones stay unchanged."""

    kind = "scaler"
    models = ("linear", "neighbors", "network")  # trees split a column at the same rows regardless of its scale

    def naive(self, instance: Instance) -> Treatments:
        return _every(instance, scalers.LinearScaler(name="StandardScaler"))

    def panel(self, instance: Instance) -> Sequence[Treatments]:
        logs = {
            name: scalers.Log1p(name="log1p")
            for name in instance.dataset.of_kind("number")
            if abs(skewness(instance.dataset.train[name].dropna().to_numpy(dtype=float))) > SKEWED
        }
        naive, power = self.naive(instance), _every(instance, scalers.PowerTransformer(name="PowerTransformer"))
        return [naive, {**naive, **logs}, power, *self.quick(instance)]

    def quick(self, instance: Instance) -> Sequence[Treatments]:
        return [_every(instance, scalers.QuantileTransformer(name="QuantileTransformer", output_distribution="normal"))]

    def unlisted(self, instance: Instance) -> Treatments:
        return _every(instance, scalers.NoScaler(name="none"))


def _every(instance: Instance, scaler: scalers.Scaler) -> dict[str, scalers.Scaler]:
    return dict.fromkeys(instance.dataset.of_kind("number"), scaler)


STUDY = Scalings()


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    truth, plan = instance.truth, STUDY.recommended(instance)
    features = []
    for name, fact in truth["features"].items():
        shape = {"skewed": abs(fact["skewness"]) > SKEWED, "outliers": fact["outlying"] > OUTLYING}
        figures = {"column": name, "mean": fact["mean"], "std": fact["std"]}
        features.append({**figures, **shape, "scaler": plan.get(name, {"name": "none"})})
    return {"features": features, "spread": truth["spread"], "not_needed_for": list(INDIFFERENT)}
