"""Tables of which it is known what each feature tells."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from mleredux_techniques.features.grading import solution
from mleredux_techniques.kit import Dataset, Instance
from technique_documents.bases import base_of

from known_tables import Known, Rng, base, random_test

ROWS = 800


def _known(rng: Rng, kind: str, problem: str = "binary") -> Known:
    """f0 and f1 tell, f2 and f3 do not; the right document knows, the wrong one takes all for the same."""
    table = base(rng, problem, ROWS)
    middle = table["y"].rank(method="first").to_numpy() / ROWS - 0.5
    told: dict[str, str] = {"f0": "alone", "f1": "alone", "f2": "nothing", "f3": "nothing"}
    right: dict[str, Any] = {"tells": told, "pairs": [], "copies": []}
    if kind == "bent":
        table["bent"] = rng.choice([-1, 1], ROWS) * np.exp(middle + 0.3 * rng.standard_normal(ROWS))
        told["bent"] = "alone"
    elif kind == "signs":
        signs = rng.choice([-1, 1], ROWS)
        table["one"] = signs * rng.exponential(1, ROWS)
        table["other"] = signs * np.sign(middle + 0.1 * rng.standard_normal(ROWS)) * rng.exponential(1, ROWS)
        told |= {"one": "together", "other": "together"}
        right["pairs"] = [["one", "other"]]
    elif kind == "copies":
        table["again"] = np.exp(table["f0"] + 0.05 * rng.standard_normal(ROWS))
        told["again"] = "alone"
        right["copies"] = [["f0", "again"]]
    elif kind == "names":
        table["name"] = [f"n{int(place * 6)}" for place in middle + 0.3 * rng.standard_normal(ROWS)]
        told["name"] = "alone"
    wrong = {"tells": dict.fromkeys(told, "nothing" if kind == "bent" else "alone"), "pairs": [], "copies": []}
    return Known(table, random_test(rng, ROWS), right, wrong, "rmse" if problem == "regression" else "roc-auc")


def document(claims: dict[str, Any], truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Strengths and skewness are those of the table."""
    best = solution(Instance(dataset, truth, base_of(dataset)))
    told = [{**one, "tells": claims["tells"][one["column"]]} for one in best["features"]]
    return {**best, "features": told, "pairs": claims["pairs"], "copies": claims["copies"]}


KINDS: dict[str, Callable[[Rng], Known]] = {
    "bent": partial(_known, kind="bent"),
    "signs": partial(_known, kind="signs"),
    "copies_of_numbers": partial(_known, kind="copies", problem="regression"),
    "names": partial(_known, kind="names", problem="multiclass"),
}
