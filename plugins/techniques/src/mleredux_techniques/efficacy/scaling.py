"""Scalings by held-out loss with a linear and a tree model.

Naive: StandardScaler on every number, whatever it looks like. Strong: the best of four plans within the training table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques.dataset import Dataset
from mleredux_techniques.efficacy.carrying_out import choose, losses
from mleredux_techniques.efficacy.comparison import Choice, judge, undecided
from mleredux_techniques.efficacy.recipe import Recipe
from mleredux_techniques.efficacy.splits import pool
from mleredux_techniques.results import Efficacy
from mleredux_techniques.schemas.scaling import (
    Log1p,
    NoScaler,
    PowerTransformer,
    QuantileTransformer,
    Scaler,
    ScalingAnalysis,
    StandardScaler,
)

MEASURE = "held-out squared error (1: nothing learned) of a ridge and a forest"
NAIVE = "StandardScaler on every number"
SKEWED = 1.0
_STANDARD = StandardScaler(name="StandardScaler")


def measure(document: ScalingAnalysis, dataset: Dataset) -> Efficacy:
    """Carry the recommended scalers out; a number that is not listed stays as it is."""
    numbers = dataset.of_kind("number")
    if not numbers:
        return undecided("There is no number to scale.")
    given: dict[str, Scaler] = {name: NoScaler(name="none") for name in numbers}
    given |= {feature.column: feature.scaler for feature in document.features if feature.column in given}
    name, plan = strong(dataset)
    one = pool(dataset)
    return judge(
        Choice(losses(one, _recipes(naive(dataset))), NAIVE),
        Choice(losses(one, _recipes(plan)), name),
        Choice(losses(one, _recipes(given)), _told(given)),
        overlap=one.overlap,
        measure=MEASURE,
        sample=one.sample,
    )


def naive(dataset: Dataset) -> dict[str, Scaler]:
    """StandardScaler on every number."""
    return dict.fromkeys(dataset.of_kind("number"), _STANDARD)


def strong(dataset: Dataset) -> tuple[str, dict[str, Scaler]]:
    """The plan of the panel that does best within the training table, and its name.

    Only the linear model chooses: a forest splits a column at the same rows however it is scaled.
    """
    numbers = dataset.of_kind("number")
    skewed = {name for name in numbers if abs(skewness(dataset.train[name].to_numpy(dtype=float))) > SKEWED}
    quantiles = QuantileTransformer(name="QuantileTransformer", output_distribution="normal")
    log: Scaler = Log1p(name="log1p")
    panel: dict[str, dict[str, Scaler]] = {
        NAIVE: naive(dataset),
        "log1p on skewed numbers, StandardScaler on others": {n: log if n in skewed else _STANDARD for n in numbers},
        "PowerTransformer on every number": dict.fromkeys(numbers, PowerTransformer(name="PowerTransformer")),
        "QuantileTransformer to normal on every number": dict.fromkeys(numbers, quantiles),
    }
    best = choose(dataset, {name: _recipes(plan) for name, plan in panel.items()}, ("linear",))
    return best, panel[best]


def skewness(values: np.ndarray[Any, Any]) -> float:
    """The third standardised moment of what is not missing; 0 where nothing varies."""
    known = values[~np.isnan(values)]
    spread = float(known.std()) if len(known) else 0.0
    return float((((known - known.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0


def _recipes(plan: dict[str, Scaler]) -> dict[str, Recipe]:
    return {name: Recipe(scaler=scaler) for name, scaler in plan.items()}


def _told(plan: dict[str, Scaler]) -> str:
    names = [scaler.name for scaler in plan.values()]
    return ", ".join(f"{name} on {names.count(name)}" for name in sorted(set(names)))
