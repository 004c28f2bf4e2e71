"""Facts of `shift`: distances between both tables, and what only the labels of the test tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.judging.marks import claimed, close, facts_of, finding, shortened, soft_f1, versus
from mleredux_techniques._kit.judging.results import Facts
from mleredux_techniques.shift.document import ShiftAnalysis

Array = np.ndarray[Any, Any]
KEY = "shift"
"""The key of what was planted."""
MOST_VALUES = 50
ERRORS, LEAST, TOLERATED = 4.0, 0.05, 0.03
"""The target has moved by more than this number of standard errors, and this share (or standard deviations) …"""


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return distances, and the target in both tables; what does harm is found by models (`efficacy.reference`)."""
    found = {name: distance(dataset, name) for name in dataset.features}
    spread = float(dataset.train[dataset.target].std()) or 1.0 if dataset.problem == "regression" else 1.0
    parts = [_target(dataset, frame[dataset.target].to_numpy()) for frame in (dataset.train, dataset.test)]
    (ours, error), (theirs, other) = parts
    moves = {name: abs(theirs[name] - ours[name]) / spread for name in ours}
    sure = [moves[name] > max(LEAST, ERRORS * np.hypot(error[name], other[name]) / spread) for name in ours]
    return {
        "distances": {name: value for name, value in found.items() if value is not None},
        "target": theirs,
        "train": ours,
        "spread": spread,
        "move": max(moves.values()),
        "moved": any(sure),
    }


def distance(dataset: Dataset, name: str) -> float | None:
    """Return the distance of a feature between training and test; None for texts of many values."""
    from scipy.stats import ks_2samp

    ours, theirs = dataset.train[name], dataset.test[name]
    if dataset.kinds[name] == "number":
        known = ours.dropna(), theirs.dropna()
        return float(ks_2samp(*known).statistic) if all(map(len, known)) else 0.0
    if ours.nunique() > MOST_VALUES:
        return None
    shares = [part.fillna("").astype(str).value_counts(normalize=True) for part in (ours, theirs)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def _target(dataset: Dataset, values: Array) -> tuple[dict[str, float], dict[str, float]]:
    """Return the share of each class (or the mean, in units of the training rows), with standard errors."""
    if dataset.problem == "regression":
        return {"": float(values.mean())}, {"": float(values.std() / np.sqrt(len(values)))}
    shares = {name: float((values == name).mean()) for name in dataset.classes}
    return shares, {name: float(np.sqrt(share * (1 - share) / len(values))) for name, share in shares.items()}


def assess(document: ShiftAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with both tables."""
    true: dict[str, float] = truth["distances"]
    given = {one.column: one for one in document.features}
    right = {name for name in {*given} & {*true} if close(given[name].distance, true[name], 0.02, 0.01) == 1}
    broken, unsure = {*truth["broken"]}, {*truth["unsure"]}
    said = {name for name, one in given.items() if one.broken} - unsure
    bound = max(TOLERATED, truth["move"] / (4 if truth["moved"] else 1))
    told = document.target if isinstance(document.target, dict) else {"": document.target}
    target = {class_name(name) if name else "": value for name, value in told.items()}
    off = _apart(target, truth["target"], truth["spread"])
    changes, column = truth["changes"], document.changes
    what = "Features that do harm in the test:"
    sure = said & right
    shown = f"In the test, the target is {_shown(truth['target'])}; in the training rows {_shown(truth['train'])}."
    return facts_of(
        [
            finding(
                "distances",
                0.15,
                soft_f1(len(right), len(given), len(true)),
                versus(len(given), shortened(true)),
                f"{len(right)} of {len(true)} were correct.",
                true=len(true),
                given=len(given),
                decides=False,
            ),
            claimed("broken", 0.35, sure, broken, what, false=len(said - sure)),
            finding(
                "target",
                0.25,
                1.0 if off <= bound else 0.5 if off <= 2 * bound else 0.0,
                versus(target, truth["target"]),
                shown,
                true=int(truth["moved"]),
                given=int(off > bound),
            ),
            finding(
                "changes",
                0.25,
                float(column == changes or column in truth["open"]),
                versus(column, changes),
                f"The relation with the target changes along {changes}."
                if changes
                else "No relation changes along a time.",
                true=int(changes is not None),
                given=int(column is not None and column not in truth["open"]),
            ),
        ]
    )


def _apart(given: dict[str, float], true: dict[str, float], spread: float) -> float:
    """Return the largest difference; infinite between a number and classes."""
    if ("" in given) != ("" in true):
        return float("inf")
    return max(abs(given.get(name, 0.0) - true.get(name, 0.0)) for name in {*given, *true}) / spread


def _shown(target: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}".strip() for name, value in target.items())
