"""Facts of `features`: what columns tell of the target alone and in pairs, by cross-validated skill."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.association import strengths
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.marks import close, component, f1, facts_of, finding, listing, shortened, soft_f1, versus
from mleredux_techniques._kit.results import Facts
from mleredux_techniques._kit.skill import Judge
from mleredux_techniques._kit.views import View, in_bins, of_values
from mleredux_techniques.features.document import FeaturesAnalysis

Array = np.ndarray[Any, Any]
ROWS = 4_000
MOST_PAIRED = 40
CHANCE, SURE = 2.5, 5.0
"""Skill of a column in standard errors: none below, some above, else either answer is right."""
CHANCE_OF_PAIR, SURE_OF_PAIR = 4.0, 6.0
"""The same for what a pair tells more than the better one of both: there are many pairs."""
BINS, MOST_CODES = 6, 30
SAME, UNSURE = 0.95, 0.01
MOST_RANKED = 300
KEY = "features"
"""The key of what was planted."""
TOLERANCES = """\
- `strength` of each feature (weight 0.2): within 2 % or 0.01; features that do not exist count against it
- `tells` (0.4): the share of features that tell something and are said to, plus the share of those that tell nothing
  and are said to, minus 1; only features whose strength is correct count. Features about which these rows can't decide
  (a cross-validated skill between 2.5 and 5 standard errors) do not count
- `pairs` (0.25), `copies` (0.15): F1; either answer is correct for a correlation from 0.94 to 0.96, and for pairs whose
  gain is between 4 and 6 standard errors
- `skewness` (0.1, numeric targets only): within 2 %
- pairs and copies of which there are none weigh a twentieth unless some are claimed"""


KINDS = ("alone", "together", "nothing")


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return strengths, what each feature tells, pairs and copies; planted features are known."""
    known = strengths(dataset)
    tells, pairs, open_pairs = _measured(dataset)
    if told := dataset.planted.get(KEY):
        tells |= {name: what for what in KINDS for name in told[what]}
        pairs, open_pairs = sorted(map(sorted, told["pairs"])), [*pairs, *open_pairs]
    copies, open_copies = _copies(dataset)
    values = dataset.train[dataset.target].to_numpy(dtype=float) if dataset.problem == "regression" else None
    return {
        "strengths": {name: known.get(name, 0.0) for name in dataset.features},
        "tells": {name: what for name, what in tells.items() if what},
        "pairs": pairs,
        "open pairs": [pair for pair in open_pairs if pair not in pairs],
        "copies": copies,
        "open copies": open_copies,
        "skewness": None if values is None else skewness(values),
    }


def skewness(values: Array) -> float:
    """Return the third standardized moment; 0 for constants."""
    return float((((values - values.mean()) / (values.std() or 1.0)) ** 3).mean())


def _measured(dataset: Dataset) -> tuple[dict[str, str | None], list[list[str]], list[list[str]]]:
    """Return what each feature tells (None if these rows can't decide), pairs, and pairs that may be some."""
    rows = np.sort(np.random.default_rng(0).permutation(len(dataset.train))[:ROWS])
    small = replace(dataset, train=dataset.train.iloc[rows].reset_index(drop=True))
    judge, root = Judge(small), np.sqrt(len(rows))
    views = {name: _view(small, name) for name in dataset.features}
    alone = {name: float(judge.inside(view).max()) * root for name, view in views.items()}
    strongest = sorted(views, key=lambda name: -alone[name])[:MOST_PAIRED]
    tells: dict[str, str | None] = {}
    for name, view in views.items():
        tells[name] = "alone" if alone[name] > SURE else None
        judged = name in strongest or view.count == 1
        if judged and alone[name] < CHANCE and view.count <= len(rows) // 8:
            tells[name] = "nothing"
    pairs: list[list[str]] = []
    unsure: list[list[str]] = []
    for a, b in itertools.combinations([name for name in strongest if views[name].count <= MOST_CODES], 2):
        left, right = views[a], views[b]
        joint = View("together", left.train * right.count + right.train, left.test, left.count * right.count, False)
        gain = float(judge.inside(joint).max()) * root - max(alone[a], alone[b])
        if gain > CHANCE_OF_PAIR:
            (pairs if gain > SURE_OF_PAIR else unsure).append(sorted([a, b]))
            for name in (a, b):
                if tells[name] != "alone":
                    tells[name] = "together" if gain > SURE_OF_PAIR else None
    return tells, pairs, unsure


def _view(dataset: Dataset, name: str) -> View:
    train = dataset.train[name]
    if dataset.kinds[name] == "text":
        return of_values(name, train.fillna("").to_numpy(dtype=object), np.zeros(0, dtype=object))
    return in_bins(name, train.to_numpy(dtype=float), np.zeros(0), bins=BINS)


def _copies(dataset: Dataset) -> tuple[list[list[str]], list[list[str]]]:
    """Return pairs of numbers with nearly the same order, and those near the bound."""
    numbers = [name for name in dataset.of_kind("number") if dataset.train[name].nunique() > 1][:MOST_RANKED]
    told = dataset.train[numbers].corr(method="spearman").abs().to_numpy()
    near = [
        (told[a, b], sorted([numbers[a], numbers[b]])) for a, b in zip(*np.triu_indices(len(numbers), 1), strict=True)
    ]
    sure = sorted(pair for value, pair in near if value > SAME + UNSURE)
    return sure, sorted(pair for value, pair in near if abs(value - SAME) <= UNSURE)


def assess(document: FeaturesAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with what was measured."""
    true, tells = truth["strengths"], truth["tells"]
    given = {one.column: one for one in document.features}
    right = {name for name, one in given.items() if name in true and close(one.strength, true[name], 0.02, 0.01) == 1}
    nothing = sorted(name for name, what in tells.items() if what == "nothing")
    said = sorted(name for name, one in given.items() if one.tells == "nothing" and tells.get(name, "nothing") in KINDS)
    shares = []
    for kinds in (("nothing",), ("alone", "together")):
        members = [name for name, what in tells.items() if what in kinds]
        found = [
            name for name in members if name in right and (given[name].tells == "nothing") == (kinds == ("nothing",))
        ]
        shares += [len(found) / len(members)] if members else []
    parts = [
        component(
            "strengths",
            0.2,
            soft_f1(len(right), len(given), len(true)),
            versus(len(given), shortened(true)),
            f"{len(right)} of {len(true)} were correct.",
        ),
        finding(
            "tells",
            0.4,
            sum(shares) - (len(shares) - 1),
            versus(said, nothing),
            f"Features that tell nothing: {listing(nothing)}.",
            true=len(nothing),
            given=len(said),
        ),
    ]
    for name, weight in (("pairs", 0.25), ("copies", 0.15)):
        known, either = ({tuple(pair) for pair in truth[key]} for key in (name, f"open {name}"))
        claims = {tuple(sorted(pair)) for pair in getattr(document, name)} - either
        parts.append(
            finding(
                name,
                weight,
                f1(claims, known),
                versus(sorted(claims), sorted(known)),
                f"{name.capitalize()}: {listing(' and '.join(pair) for pair in sorted(known))}.",
                true=len(known),
                given=len(claims),
            )
        )
    if (skewed := truth["skewness"]) is not None:
        credit = 0.0 if document.skewness is None else close(document.skewness, skewed, 0.02, 0.01)
        told = f"The skewness of the target is {skewed:.3f}."
        parts.append(component("skewness", 0.1, credit, versus(document.skewness, round(skewed, 4)), told))
    return facts_of(parts)
