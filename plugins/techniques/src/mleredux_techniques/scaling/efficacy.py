"""Efficacy of scalings: the competition's metric of the reference models on held-out training rows.

Naive: StandardScaler on every number, whatever its distribution. Strong: the best of four plans on the training table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Dataset, Instance
from mleredux_techniques._kit.judging import plans
from mleredux_techniques._kit.judging.comparison import Difference, undecided
from mleredux_techniques._kit.judging.plans import Plan, choose, compare
from mleredux_techniques._kit.judging.reference import Model
from mleredux_techniques._kit.judging.results import Efficacy
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing
from mleredux_techniques._kit.vocabulary.scalers import (
    Log1p,
    NoScaler,
    PowerTransformer,
    QuantileTransformer,
    Scaler,
    StandardScaler,
)
from mleredux_techniques.scaling.document import ScalingAnalysis

NAIVE = "StandardScaler on every number"
SKEWED = 1.0
SENSITIVE: tuple[Model, ...] = ("linear", "neighbors", "network")
"""The models that the question is about: trees split a column at the same rows whatever its scale."""
_STANDARD = StandardScaler(name="StandardScaler")


def measure(document: ScalingAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommended scalers; an unlisted number is unchanged."""
    dataset = instance.dataset
    numbers = dataset.of_kind("number")
    if not numbers:
        return undecided("There is no numeric feature to scale.")
    given: dict[str, Scaler] = {name: NoScaler(name="none") for name in numbers}
    given |= {feature.column: feature.scaler for feature in document.features if feature.column in given}
    before, best = contrast(instance)
    return compare(instance, naive=before, strong=best, given=(_told(given), _plan(given)), models=SENSITIVE)


def naive(dataset: Dataset) -> dict[str, Scaler]:
    """Return the naive plan: StandardScaler on every number."""
    return dict.fromkeys(dataset.of_kind("number"), _STANDARD)


def contrast(instance: Instance) -> tuple[tuple[str, Plan], tuple[str, Plan]]:
    """Return the naive plan and the panel's best one, with their names."""
    panel = {name: _plan(plan) for name, plan in panel_of(instance.dataset).items()}
    best = choose(instance, panel, SENSITIVE)
    return (NAIVE, panel[NAIVE]), (best, panel[best])


def gap(instance: Instance) -> Difference:
    """Return what good advice gains over the naive one: ranks over StandardScaler."""
    panel = [_plan(plan) for plan in panel_of(instance.dataset).values()]
    return plans.gap(instance, panel[0], panel[-1])


def panel_of(dataset: Dataset) -> dict[str, dict[str, Scaler]]:
    """Return the plans of which the strong one is the best, simplest first."""
    numbers = dataset.of_kind("number")
    skewed = {name for name in numbers if abs(skewness(dataset.train[name].to_numpy(dtype=float))) > SKEWED}
    quantiles = QuantileTransformer(name="QuantileTransformer", output_distribution="normal")
    log: Scaler = Log1p(name="log1p")
    return {
        NAIVE: naive(dataset),
        "log1p on skewed numbers, StandardScaler on others": {n: log if n in skewed else _STANDARD for n in numbers},
        "PowerTransformer on every number": dict.fromkeys(numbers, PowerTransformer(name="PowerTransformer")),
        "QuantileTransformer to normal on every number": dict.fromkeys(numbers, quantiles),
    }


def skewness(values: np.ndarray[Any, Any]) -> float:
    """Return the third standardized moment of the non-missing values; 0 if they are constant."""
    known = values[~np.isnan(values)]
    spread = float(known.std()) if len(known) else 0.0
    return float((((known - known.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0


def _plan(plan: dict[str, Scaler]) -> dict[str, Preprocessing]:
    return {name: Preprocessing(scaler=scaler) for name, scaler in plan.items()}


def _told(plan: dict[str, Scaler]) -> str:
    names = [scaler.name for scaler in plan.values()]
    return ", ".join(f"{name} on {names.count(name)}" for name in sorted(set(names)))
