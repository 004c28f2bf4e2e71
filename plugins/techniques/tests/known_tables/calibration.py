"""Predictions that are known to be off in one way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mleredux_techniques.kit import Dataset
from technique_documents.calibration import naive, perfect

from known_tables import Known, Rng, base, random_test

ROWS = 400


def _known(rng: Rng, problem: str, metric: str) -> Known:
    return Known(base(rng, problem, ROWS), random_test(rng, ROWS), True, False, metric)


def document(claims: bool, truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """The truth, or true figures with the verdict that each model is calibrated."""
    best = perfect(truth, dataset)
    return best if claims else {**best, **naive(best, truth, facts=False)}


KINDS: dict[str, Callable[[Rng], Known]] = {
    "multiclass_accuracy": partial(_known, problem="multiclass", metric="accuracy"),
}
