"""How predictive codes are of the target: cross-validated in the training table, and carried over to the test set.

A model of one column is the smoothed mean of the target for each code (D. Micci-Barreca, "A Preprocessing Scheme for
High-Cardinality Categorical Attributes", 2001). Skill is the correlation of its predictions with an output: one class
against the rest; for numeric targets, the rank, and each of seven ranges against the rest. It is computed with NumPy
alone, so that it does not depend on the versions of other libraries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Dataset
from mleredux_techniques._kit.data.splits import assign_folds, group_codes
from mleredux_techniques._kit.data.structure import moments
from mleredux_techniques._kit.data.views import View

FOLDS = 5
SMOOTH = 5.0
MAX_OUTPUTS = 20
RARE = 10
RANGES = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
NOTABLE = 0.1
WINDOWS = 4
"""Number of windows in each fold if the test rows are later."""
_RESAMPLES = 200


@dataclass(frozen=True)
class Skill:
    """Skill of a view, for the output on which it loses the most.

    Attributes:
        inside: Cross-validated skill in the training table, with folds like the split, and weighted to the test's
            values.
        outside: Skill on the test set of predictions fitted to the training table.
        error: Standard error of `inside - outside`, bootstrapped over the test rows (or the groups of both tables);
            infinite if less than `NOTABLE` is lost.
    """

    view: View
    inside: float
    outside: float
    error: float

    def lost(self, retention: float = 1.0) -> float:
        """Return the skill lost on the test set, beyond what other columns lose."""
        return retention * self.inside - max(self.outside, 0.0)


class Judge:
    """Measures the skill of views for one dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.y, self.truth = outputs(dataset)
        self.prior = self.y.mean(axis=0)
        self.ahead = dataset.time is not None
        self.groups = group_codes(dataset, dataset.train) if dataset.group else None
        self.weights = _shift_of_target(self.y, self.truth)

    @cached_property
    def folds(self) -> Array:
        """The fold of each training row: at random, by complete groups, or consecutive in time."""
        return self.folds_of(self.groups)

    @cached_property
    def inflation(self) -> Array:
        """The result of `inflation` for each output."""
        return inflation(self.groups, self.y)

    def inflated(self, x: Array) -> Array:
        """Return the result of `inflation` for each output and the corresponding column of x."""
        if self.groups is None:
            return self.inflation[: x.shape[1]]
        return np.asarray(1 + (self.inflation[: x.shape[1]] - 1) * _intraclass(self.groups, x))

    def folds_of(self, groups: Array | None) -> Array:
        """Return folds that keep groups together; consecutive ones if the test rows are later."""
        rows = len(self.y)
        if self.ahead:
            order = np.argsort(moments(self.dataset, self.dataset.train).to_numpy(dtype=float), kind="stable")
            folds = np.empty(rows, dtype=int)
            folds[order] = np.arange(rows) * FOLDS // rows
            return folds
        strata = np.zeros(rows, dtype=int) if self.dataset.problem == "regression" else self.y.argmax(axis=1)
        return assign_folds(strata, groups, FOLDS, seed=0)

    @cached_property
    def windows(self) -> tuple[Array, Array]:
        """Return the window of each training and test row if the test rows are later: consecutive rows, about equally
        many in each.

        Skill is compared within windows, since the longer the period, the more a season or trend explains.
        """
        windows = []
        for frame in (self.dataset.train, self.dataset.test):
            count = max(round(WINDOWS * FOLDS * len(frame) / len(self.y)), 1)
            order = np.argsort(np.argsort(moments(self.dataset, frame).to_numpy(dtype=float), kind="stable"))
            windows.append(order * count // len(frame))
        return windows[0], windows[1]

    def inside(self, view: View, folds: Array | None = None) -> Array:
        """Return the cross-validated skill for each output, measured within folds."""
        folds = self.folds if folds is None else folds
        fitted = cross_fitted(view.train, self.y, folds, ahead=self.ahead)
        return self._inside(fitted, folds, folds, np.ones(len(folds)))

    def _inside(self, fitted: Array, folds: Array, parts: Array, weights: Array) -> Array:
        ours, theirs = (_within(values, parts, weights) for values in (fitted, self.y))
        usable = folds >= int(self.ahead)
        return correlations(ours[usable], theirs[usable], weights[usable])

    def outside(self, view: View) -> Array:
        """Return predictions of the test rows; codes absent from the training rows get the mean."""
        sums = np.stack([np.bincount(view.train, self.y[:, k], view.count + 1) for k in range(self.y.shape[1])], axis=1)
        sizes = np.bincount(view.train, minlength=view.count + 1).astype(float)
        return np.asarray((sums + SMOOTH * self.prior) / (sizes[:, None] + SMOOTH))[view.test]

    def skill(
        self, view: View, folds: Array | None = None, seen: Array | None = None, *, shifted: bool = True
    ) -> Skill:
        """Compare the skill in the training table with that on the test set.

        Args:
            folds: Folds of the training rows; None for those that match the split.
            seen: The test rows to judge; None for all.
            shifted: Whether training rows are weighted to the test's values, so that drift alone loses nothing.
        """
        folds = self.folds if folds is None else folds
        fitted, predicted = cross_fitted(view.train, self.y, folds, ahead=self.ahead), self.outside(view)
        every, rows = np.ones(len(self.y)), np.ones(len(predicted), dtype=bool) if seen is None else seen
        weights = _shift(view, rows) if shifted else every
        parts = self.windows[0] if self.ahead else folds
        inside = np.minimum(*(self._inside(fitted, folds, parts, each) for each in (every, weights)))
        return self._lost(view, inside, fitted, predicted, rows, weights)

    def skill_of_prose(self, train: Any, test: Any) -> Skill:
        """Compare the skill of all words together: the mean of their out-of-fold smoothed target means.

        Args:
            train, test: The texts, of shape (rows,).
        """
        from sklearn.feature_extraction.text import HashingVectorizer

        tool = HashingVectorizer(n_features=1 << 18, binary=True, norm="l2", alternate_sign=False)
        ours, theirs = (tool.transform(texts) for texts in (train, test))
        folds, apart = self.folds, self.y - self.prior

        def means(known: Array, wanted: Any) -> Array:
            sums, sizes = ours[known].T @ apart[known], np.asarray((ours[known] > 0).sum(axis=0)).ravel()
            return np.asarray(wanted @ (sums / (sizes[:, None] + SMOOTH)))

        first = int(self.ahead)
        fitted = np.zeros(self.y.shape)
        for fold in range(first, FOLDS):
            fitted[folds == fold] = means(folds < fold if self.ahead else folds != fold, ours[folds == fold])
        ours_all, theirs_all = (np.ones(len(rows), dtype=bool) for rows in (self.y, self.truth))
        nothing, weights = View("all words", folds[:0], folds[:0], 0, flat=False), np.ones(len(folds))
        parts = self.windows[0] if self.ahead else folds
        inside, predicted = self._inside(fitted, folds, parts, weights), means(ours_all, theirs)
        return self._lost(nothing, inside, fitted, predicted, theirs_all, weights)

    def _lost(self, view: View, inside: Array, fitted: Array, predicted: Array, rows: Array, weights: Array) -> Skill:
        """Return the skill for the output that loses the most on the test set.

        Args:
            inside: Cross-validated skill for each output.
            fitted: Cross-validated predictions of the training rows.
            predicted: Predictions of the test rows.
            rows: The test rows to judge.
            weights: The weights of the training rows.
        """
        groups = group_codes(self.dataset, self.dataset.test)[rows]
        held, parts = self.weights[rows], self.windows[1][rows] if self.ahead else np.zeros(rows.sum(), dtype=int)
        both = np.stack([predicted[rows], self.truth[rows]], axis=-1)
        apart = np.stack([_within(both[:, k], parts, held[:, k]) for k in range(len(inside))], axis=1)
        outside = np.array([correlations(apart[:, k, :1], apart[:, k, 1:], held[:, k])[0] for k in range(len(inside))])
        worst = int((inside - outside).argmax())
        if inside[worst] - outside[worst] < NOTABLE:
            return Skill(view, float(inside[worst]), float(outside[worst]), np.inf)
        error = _error(apart[:, worst, 0], apart[:, worst, 1], held[:, worst], groups)
        # for a rare output, resamples are too similar; a few groups of similar rows may predict others by chance
        alike, count = self.inflation[worst], weights.sum() ** 2 / (weights**2).sum()
        error = max(error, float((1 - outside[worst] ** 2) / np.sqrt(max(rows.sum() / alike, 2))))
        within = float((1 - inside[worst] ** 2) / np.sqrt(max(count / alike, 2)))
        if self.groups is not None:
            within = max(within, _error(fitted[:, worst], self.y[:, worst], weights, self.groups))
        return Skill(view, float(inside[worst]), float(outside[worst]), float(np.hypot(error, within)))


def inflation(groups: Array | None, y: Array, x: Array | None = None) -> Array:
    """Return the factor by which the similarity of rows within groups inflates the variance of each output's mean (L.
    Kish, "Survey Sampling", 1965: the design effect, 1 + (rows per group - 1) · intraclass correlation), or of its
    relation with x, which is also multiplied by the intraclass correlation of x (B. Moulton, "Random Group Effects and
    the Precision of Regression Estimates", 1986).
    """
    if groups is None:
        return np.ones(y.shape[1])
    sizes = np.bincount(groups)
    similar = _intraclass(groups, y) * (1.0 if x is None else _intraclass(groups, x))
    return np.asarray(1 + ((sizes**2).sum() / sizes.sum() - 1) * similar)


def _intraclass(groups: Array, y: Array) -> Array:
    sizes = np.bincount(groups).astype(float)
    means = np.stack([np.bincount(groups, column) for column in y.T], axis=1) / sizes[:, None]
    within = ((y - means[groups]) ** 2).sum(axis=0) / max(len(y) - len(sizes), 1)
    between = (sizes[:, None] * (means - y.mean(axis=0)) ** 2).sum(axis=0) / max(len(sizes) - 1, 1)
    size = (sizes**2).sum() / sizes.sum()
    return np.asarray(np.clip((between - within) / np.maximum(between + (size - 1) * within, 1e-12), 0, 1))


def cross_fitted(codes: Array, y: Array, folds: Array, *, ahead: bool = False) -> Array:
    """Return the smoothed means of the outputs by code in other folds, of shape (rows, outputs).

    Args:
        ahead: Whether only earlier folds count.
    """
    count = int(codes.max(initial=0)) + 1
    cells = folds * count + codes
    sums = np.stack([np.bincount(cells, column, FOLDS * count) for column in y.T], axis=1).reshape(FOLDS, count, -1)
    sizes = np.bincount(cells, minlength=FOLDS * count).reshape(FOLDS, count, 1).astype(float)
    sums, sizes = ((np.cumsum(part, axis=0) if ahead else part.sum(axis=0)) - part for part in (sums, sizes))
    return np.asarray(((sums + SMOOTH * y.mean(axis=0)) / (sizes + SMOOTH))[folds, codes])


def overlap(view: View) -> float:
    """Return the effective share of the training rows whose values occur in the test set."""
    weights = _shift(view, np.ones(len(view.test), dtype=bool))
    return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))


def outputs(dataset: Dataset) -> tuple[Array, Array]:
    """Return the outputs of training and test rows, each of shape (rows, outputs)."""
    ours, theirs = (frame[dataset.target].to_numpy() for frame in (dataset.train, dataset.test))
    if dataset.problem != "regression":
        ours, theirs = ours.astype(str), theirs.astype(str)
        names, sizes = np.unique(ours, return_counts=True)
        n_test = [int((theirs == name).sum()) for name in names]
        order = np.argsort(-sizes, kind="stable")
        usable = [str(names[k]) for k in order if sizes[k] >= RARE and n_test[k] >= RARE // 2] or [str(names[order[0]])]
        chosen = usable[-1:] if len(names) == 2 else usable[:MAX_OUTPUTS]
        return tuple(np.stack([values == name for name in chosen], axis=1).astype(float) for values in (ours, theirs))  # type: ignore[return-value]
    ours, theirs = ours.astype(float), theirs.astype(float)
    enough = [share for share in RANGES if min(share, 1 - share) * min(len(ours), len(theirs)) >= RARE]
    # in the future, numbers may shift from one range to another
    edges = np.unique(np.quantile(ours, enough or [0.5])) if dataset.time is None else np.zeros(0)
    known = np.sort(ours)

    def code(values: Array) -> Array:
        rank = (np.searchsorted(known, values, "left") + np.searchsorted(known, values, "right")) / (2 * len(known))
        places = np.searchsorted(edges, values, "right")
        ranges = [places == k for k in range(len(edges) + 1)] if len(edges) else []
        return np.column_stack([rank, *ranges]).astype(float)

    return code(ours), code(theirs)


def _shift_of_target(ours: Array, theirs: Array) -> Array:
    """Return test row weights for each output that restore the class shares of the training table."""
    weights = np.ones(theirs.shape)
    for k in range(ours.shape[1]):
        if set(np.unique(ours[:, k])) <= {0.0, 1.0}:
            mine, other = ours[:, k].mean(), theirs[:, k].mean()
            if 0 < other < 1:
                weights[:, k] = np.where(theirs[:, k] == 1, mine / other, (1 - mine) / (1 - other)).clip(0.1, 10)
    return weights


def _shift(view: View, rows: Array) -> Array:
    """Return training row weights that give codes the same frequencies as in the test set.

    They are equal if nearly all test rows have the same value: the column is then unknown there, which is not drift.
    """
    if view.flat:
        return np.ones(len(view.train))
    ours = np.bincount(view.train, minlength=view.count + 1)[: view.count].astype(float)
    theirs = np.bincount(view.test[rows], minlength=view.count + 1)[: view.count].astype(float)
    ratio = ((theirs + 0.5) / (theirs.sum() + 0.5 * view.count)) / ((ours + 0.5) / (ours.sum() + 0.5 * view.count))
    return np.asarray(ratio.clip(0.05, 20)[view.train])


def _within(values: Array, folds: Array, weights: Array) -> Array:
    """Return values with the mean of their fold subtracted."""
    sizes = np.bincount(folds, weights, FOLDS) + 1e-12
    means = np.stack([np.bincount(folds, weights * values[:, k], FOLDS) / sizes for k in range(values.shape[1])], 1)
    return np.asarray(values - means[folds])


def correlations(values: Array, true: Array, weights: Array) -> Array:
    """Return the weighted correlation of corresponding columns; 0 if either is constant."""
    total = weights.sum() or 1.0
    values, true = values - weights @ values / total, true - weights @ true / total
    both = weights @ (values * true)
    scale = np.sqrt((weights @ values**2) * (weights @ true**2))
    return np.asarray(np.where(scale > 1e-9 * total, both / np.maximum(scale, 1e-300), 0.0))


def _error(values: Array, true: Array, weights: Array, groups: Array) -> float:
    """Return the bootstrapped standard error of a weighted correlation, over groups of rows."""
    moments = np.stack([np.ones(len(values)), values, true, values**2, true**2, values * true], 1) * weights[:, None]
    names, members = np.unique(groups, return_inverse=True)
    summed = np.stack([np.bincount(members, moments[:, k], len(names)) for k in range(6)], 1)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), _RESAMPLES) @ summed
    total = np.maximum(drawn[:, 0], 1e-12)
    _, a, b, aa, bb, ab = (drawn / total[:, None]).T
    scale = np.sqrt(np.maximum(aa - a**2, 0) * np.maximum(bb - b**2, 0))
    return float(np.std(np.where(scale > 1e-12, (ab - a * b) / np.maximum(scale, 1e-300), 0.0)))
