"""Columns that predict the target in the training table but lose their relation with all others in the test set.

No test labels are needed: other columns predict the target, and a column that keeps its meaning in the test set still
agrees with these predictions. A column that was derived from the target (a copy, or a value known only later) and is
uninformative in the test set agrees with them only in the training table.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mleredux_agent_analyst.tables import Array, Tables, is_date

BINS, FOLDS, RIDGE = 8, 5, 10.0
FEW_ROWS = 60
TELLS = 0.2
"""Minimum correlation of a column's bins with the predictions of others at which a loss can be detected."""
KEPT = 0.5
"""A column that keeps this share of the correlation is intact."""
ERRORS = 5.0
"""Minimum difference of the two correlations, in standard errors of Fisher's z."""
SAME_BINS = 0.8
"""Minimum overlap of a column's bins in both tables: drifted columns can't be compared."""
STRONGEST = 8
"""Number of columns examined at a time: the most predictive ones in the training table."""


def lost(tables: Tables) -> dict[str, float]:
    """Return columns that lose their relation with the target, with their training correlation; worst first.

    Columns are found one by one, and each is excluded from the predictions that judge the next ones, since a column
    that reveals everything hides the others.
    """
    if tables.test is None or min(len(tables.train), len(tables.test)) < FEW_ROWS:
        return {}
    coded = {name: codes for name in tables.features if (codes := _codes(tables, name)) is not None}
    if len(coded) < 2:
        return {}
    others = _Others(coded, _target(tables))
    strengths = {name: max(_shares(codes[0], column) for column in others.target.T) for name, codes in coded.items()}
    lost_by: dict[str, float] = {}
    while len(lost_by) < STRONGEST:
        left = sorted((name for name in coded if name not in lost_by), key=lambda name: -strengths[name])[:STRONGEST]
        losses = {name: _loss(coded[name], others.predictions({name, *lost_by})) for name in left}
        worst = max(losses, key=lambda name: losses[name][0], default=None)
        if worst is None or losses[worst][0] < ERRORS:
            break
        lost_by[worst] = losses[worst][1]
    return lost_by


class _Others:
    """Ridge regressions on the bins of some columns; their products are computed once."""

    def __init__(self, coded: dict[str, tuple[Array, Array]], target: Array) -> None:
        self.target = target - target.mean(axis=0)
        self.owner = np.repeat(list(coded), BINS + 2)
        x, self.x_test = (np.hstack([np.eye(BINS + 2)[both[side]] for both in coded.values()]) for side in (0, 1))
        self.mean = x.mean(axis=0)
        self.x, self.x_test = x - self.mean, self.x_test - self.mean
        self.folds = np.random.default_rng(0).integers(FOLDS, size=len(target))
        self.products = [self._products(self.folds == fold) for fold in range(FOLDS)]
        self.whole = self._products(np.full(len(target), True))

    def predictions(self, without: set[str]) -> tuple[Array, Array]:
        """Return out-of-fold predictions of training rows, and predictions of test rows, of shape (rows, targets)."""
        kept = np.flatnonzero(~np.isin(self.owner, list(without)))
        here = np.empty_like(self.target)
        for fold, own in enumerate(self.products):
            weights = self._solved(self.whole[0] - own[0], self.whole[1] - own[1], kept)
            held = self.folds == fold
            here[held] = self.x[held][:, kept] @ weights
        return here, self.x_test[:, kept] @ self._solved(*self.whole, kept)

    def _products(self, rows: Array) -> tuple[Array, Array]:
        x = self.x[rows]
        return x.T @ x, x.T @ self.target[rows]

    @staticmethod
    def _solved(gram: Array, products: Array, kept: Array) -> Array:
        return np.asarray(np.linalg.solve(gram[np.ix_(kept, kept)] + RIDGE * np.eye(len(kept)), products[kept]))


def _loss(codes: tuple[Array, Array], predictions: tuple[Array, Array]) -> tuple[float, float]:
    """Return a column's loss in standard errors, and its correlation in the training table."""
    own, theirs = codes
    shares = [np.bincount(values, minlength=BINS + 2) / len(values) for values in codes]
    best = (0.0, 0.0)
    if np.minimum(*shares).sum() < SAME_BINS:
        return best
    for held_out, predicted in zip(predictions[0].T, predictions[1].T, strict=True):
        here, there = _correlations(own, theirs, held_out, predicted)
        if here >= TELLS and there < KEPT * here:
            error = np.sqrt(1 / (len(own) - 3) + 1 / (len(theirs) - 3))
            best = max(best, (float((np.arctanh(here) - np.arctanh(max(there, 0.0))) / error), here))
    return best


def _correlations(own: Array, theirs: Array, here: Array, there: Array) -> tuple[float, float]:
    """Return the correlation of predictions with training means by bin of a column, in both tables.

    In the training table, means exclude the row itself (leave one out), so that many bins do not look like a relation.
    """
    count = np.bincount(own, minlength=BINS + 2)
    total = np.bincount(own, weights=here, minlength=BINS + 2)
    means = (total[own] - here) / np.maximum(count[own] - 1, 1)
    overall = np.where(count > 0, total / np.maximum(count, 1), here.mean())
    return _correlation(means, here), _correlation(overall[theirs], there)


def _shares(codes: Array, values: Array) -> float:
    """Return the correlation of values with their means by bin of a column."""
    count = np.maximum(np.bincount(codes), 1)
    return _correlation((np.bincount(codes, weights=values) / count)[codes], values)


def _correlation(a: Array, b: Array) -> float:
    return float(np.corrcoef(a, b)[0, 1]) if np.ptp(a) > 1e-12 and np.ptp(b) > 1e-12 else 0.0


def _target(tables: Tables) -> Array:
    """Return ranks of numbers, or one-hot classes."""
    if tables.classes:
        return np.asarray(pd.get_dummies(tables.labels, dtype=float))
    ranks = tables.train[tables.target].rank()
    return np.asarray((ranks / len(ranks)).to_numpy(dtype=float)[:, None])


def _codes(tables: Tables, name: str) -> tuple[Array, Array] | None:
    """Bin a column in both tables: quantiles of numbers, frequent texts, a bin for missing values, a bin for others."""
    assert tables.test is not None
    if name not in tables.test:
        return None
    own, theirs = tables.train[name], tables.test[name]
    if tables.kinds[name] == "text":
        if is_date(own):
            return None
        known = list(own.value_counts().index[:BINS])
        places = {value: place for place, value in enumerate(known)}
        both = [values.map(places).fillna(BINS).astype(int).to_numpy() for values in (own, theirs)]
    else:
        edges = np.unique(np.nanquantile(own.to_numpy(dtype=float), np.linspace(0, 1, BINS + 1)[1:-1]))
        both = [np.searchsorted(edges, values.to_numpy(dtype=float)) for values in (own, theirs)]
    both = [
        np.where(values.isna().to_numpy(), BINS + 1, codes) for values, codes in zip((own, theirs), both, strict=True)
    ]
    return (both[0], both[1]) if len(np.unique(both[0])) > 1 else None
