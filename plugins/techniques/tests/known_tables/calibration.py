"""Predictions that are known to be off in one way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mleredux_techniques.calibration.grading import solution
from mleredux_techniques.kit import Dataset, Instance
from technique_documents.bases import base_of
from technique_documents.calibration import naive

from known_tables import Known, Rng, base, random_test

ROWS = 400


def _known(rng: Rng, problem: str, metric: str) -> Known:
    return Known(base(rng, problem, ROWS), random_test(rng, ROWS), True, False, metric)


def document(claims: bool, truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """The truth, or true figures with the verdict that each model is calibrated."""
    best = solution(Instance(dataset, truth, base_of(dataset)))
    return best if claims else {**best, **naive(best, truth, facts=False)}


KINDS: dict[str, Callable[[Rng], Known]] = {
    "multiclass_accuracy": partial(_known, problem="multiclass", metric="accuracy"),
}
