"""Efficacy of scalings: the competition's metric of the reference models on held-out training rows.

Naive: StandardScaler on every number, whatever its distribution. Strong: the best of four plans on the training table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Dataset, Instance
from mleredux_techniques._kit.judging.comparison import undecided
from mleredux_techniques._kit.judging.panel import Panel
from mleredux_techniques._kit.judging.reference import Model
from mleredux_techniques._kit.judging.results import Efficacy
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
_RANKS = QuantileTransformer(name="QuantileTransformer", output_distribution="normal")


def measure(document: ScalingAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommended scalers; an unlisted number is unchanged."""
    numbers = instance.dataset.of_kind("number")
    if not numbers:
        return undecided("There is no numeric feature to scale.")
    given: dict[str, Scaler] = {name: NoScaler(name="none") for name in numbers}
    given |= {feature.column: feature.scaler for feature in document.features if feature.column in given}
    return PANEL.measure(given, instance)


def naive(dataset: Dataset) -> dict[str, Scaler]:
    """Return the naive plan: StandardScaler on every number."""
    return dict.fromkeys(dataset.of_kind("number"), _STANDARD)


def ranks(dataset: Dataset) -> dict[str, Scaler]:
    """Return a good plan for planted numbers: ranks."""
    return dict.fromkeys(dataset.of_kind("number"), _RANKS)


def panel_of(dataset: Dataset) -> dict[str, dict[str, Scaler]]:
    """Return the plans of which the strong one is the best, simplest first."""
    numbers = dataset.of_kind("number")
    skewed = {name for name in numbers if abs(skewness(dataset.train[name].to_numpy(dtype=float))) > SKEWED}
    log: Scaler = Log1p(name="log1p")
    return {
        NAIVE: naive(dataset),
        "log1p on skewed numbers, StandardScaler on others": {n: log if n in skewed else _STANDARD for n in numbers},
        "PowerTransformer on every number": dict.fromkeys(numbers, PowerTransformer(name="PowerTransformer")),
        "QuantileTransformer to normal on every number": ranks(dataset),
    }


def skewness(values: np.ndarray[Any, Any]) -> float:
    """Return the third standardized moment of the non-missing values; 0 if they are constant."""
    known = values[~np.isnan(values)]
    spread = float(known.std()) if len(known) else 0.0
    return float((((known - known.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0


PANEL = Panel("scaler", NAIVE, naive, panel_of, ranks, SENSITIVE)
contrast, gap = PANEL.contrast, PANEL.gap
