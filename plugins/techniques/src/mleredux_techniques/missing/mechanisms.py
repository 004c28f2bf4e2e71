"""Mechanisms of missing values: columns that predict the gaps, cross-validated."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Dataset, Frame, Series
from mleredux_techniques._kit.data.skill import FOLDS, correlations, cross_fitted, inflation
from mleredux_techniques._kit.data.splits import assign_folds, group_codes, outputs
from mleredux_techniques._kit.data.structure import in_time, looks_like_time
from mleredux_techniques._kit.data.views import View, in_bins, of_values
from mleredux_techniques._kit.vocabulary.preprocessing import Rows, matrices

ROWS = 4_000
LEAST = 0.05
"""Minimum skill of a driver: the correlation of the gap with its cross-validated prediction."""
SURE = 4.0
"""Minimum skill of a driver, in standard errors of zero skill."""
EQUAL = 0.75
"""A column is as good a driver as the best one if it has this share of its skill, or is within two standard errors."""
HEAVY = 0.005
"""Share of the rows with the most gaps: if nothing predicts a gap without them, its mechanism is undecided."""
TOGETHER = 0.5
"""Columns are missing together if both lack values in this share of the rows in which either does. That does not show
the cause: other drivers are compared without such a column, which counts as equally good."""
JOINT = 0.08
"""Minimum skill that a pair adds to the best single column, to be a joint driver."""
SURE_OF_PAIR = 5.0
"""Minimum skill of a pair, in standard errors of zero skill; it is high because there are many pairs."""
PREDICTED, REFUTED = 0.5, 0.15
"""Minimum correlation of a column's values with their prediction from others, and maximum correlation of gaps with the
values that may go unnoticed, for refuting MNAR."""
MAX_PAIRED = 16
_BINS, _GRID = 16, 6
FEWEST = 10
"""Minimum number of gaps, and of values, for judging a mechanism."""
_Pair = tuple[float, tuple[str, str]]


@dataclass(frozen=True)
class _Driver:
    name: str
    view: View
    known: Array
    gap: bool = False
    """Whether the driver is that a column is missing, rather than the column's values."""


def mechanisms(dataset: Dataset, columns: list[str]) -> dict[str, dict[str, Any]]:
    """Return the mechanism of each column with missing values, if the training table shows it.

    MAR: the gap can be predicted from other columns, including ids and the target: `depends_on` names the best of them,
    and all equally good ones. If the column's own value, predicted from all others, is as predictive as the best of
    them, MNAR is also accepted; if only columns that are missing in the same rows, or a few rows with many gaps,
    predict the gap, MCAR is. MCAR: nothing predicts the gap; the data can't rule out MNAR, which is then not judged. If
    the gaps differ between the groups that the split kept together, MAR is also accepted.
    """
    rows = np.linspace(0, len(dataset.train) - 1, min(len(dataset.train), ROWS)).astype(int)
    train = dataset.train.iloc[rows].reset_index(drop=True)
    names = (*dataset.features, *dataset.ids, dataset.target)
    drivers = [driver for name in names for driver in _drivers(dataset, name, train[name])]
    gaps = train[list(dataset.features)].isna().sum(axis=1).to_numpy()
    heavy = np.argsort(-gaps, kind="stable")[: max(5, round(HEAVY * len(gaps)))]
    light = (gaps < 2) | ~np.isin(np.arange(len(gaps)), heavy)
    return {
        column: _mechanism(dataset, train, column, [driver for driver in drivers if driver.name != column], light)
        for column in columns
    }


def _drivers(dataset: Dataset, name: str, values: Series) -> Iterator[_Driver]:
    """Return candidate drivers of a gap: a column's values, the components of its dates, and whether it is missing."""
    import pandas as pd

    known = values.notna().to_numpy()
    dated = name in dataset.kinds and looks_like_time(values)
    classes = name == dataset.target and dataset.problem != "regression"
    if classes or (dataset.kinds.get(name) == "text" and not dated):
        if classes or values.nunique() <= len(values) // 4:
            texts = values.fillna("").to_numpy(dtype=object)
            yield _Driver(name, of_values(name, texts, texts), known)
    else:
        numbers = in_time(values).to_numpy(dtype=float)
        yield _Driver(name, in_bins(name, numbers, numbers, bins=_BINS), known)
        moments = pd.Series(pd.to_datetime(pd.Series(numbers), unit="s", errors="coerce")).dt if dated else None
        for part in ("month", "day_of_week", "hour") if dated else ():
            read = getattr(moments, part).to_numpy(dtype=float)
            yield _Driver(name, of_values(name, read, read), known)
    if not known.all():
        yield _Driver(name, of_values(name, known, known), np.ones(len(known), dtype=bool), gap=True)


def _mechanism(dataset: Dataset, train: Frame, column: str, drivers: list[_Driver], light: Array) -> dict[str, Any]:
    gap, groups = train[column].isna().to_numpy(), group_codes(dataset, train) if dataset.group else None
    nothing = {"column": column, "mechanism": "MCAR", "depends_on": [], "planted": False, "half": []}
    if gap.sum() < FEWEST or (~gap).sum() < FEWEST:
        return {**nothing, "open": True}
    usable = [driver for driver in drivers if min((gap & driver.known).sum(), (~gap & driver.known).sum()) >= FEWEST]
    skills: dict[str, float] = {}
    company: dict[str, float] = {}
    best = error = 0.0
    firm = False
    for driver in usable:
        skill, doubt = _skill(gap, groups, driver.view, driver.known)
        if skill >= (least := max(LEAST, SURE * doubt)):
            lacking = train[driver.name].isna().to_numpy()
            own = company if driver.gap and (gap & lacking).sum() >= TOGETHER * (gap | lacking).sum() else skills
            own[driver.name] = max(skill, own.get(driver.name, 0.0))
            firm |= own is skills and _skill(gap, groups, driver.view, driver.known & light)[0] >= least
            best, error = max((best, error), (skill, doubt)) if own is skills else (best, error)
    if not skills:
        skills, company = company, {}
        best = max(skills.values(), default=0.0)
    together = _together(gap, groups, [driver for driver in usable if not driver.gap], skills)
    own_value = (0.0, 1.0, 0.0) if dataset.kinds[column] == "text" else _by_value(dataset, train, column, gap, groups)
    skill, doubt, fit = own_value
    if together is None and not skills:
        refuted = fit >= PREDICTED and SURE * doubt <= REFUTED * fit and skill < max(LEAST, SURE * doubt)
        if groups is not None:  # gaps of whole groups may depend on the group
            skill, doubt = _skill(gap, None, of_values("", groups, groups), np.ones(len(gap), dtype=bool))
        by_group = ["MAR"] if groups is not None and skill >= max(LEAST, SURE * doubt) else []
        return {**nothing, "accepted": ["MCAR", *by_group], "unjudged": [] if refuted else ["MNAR"]}
    least = min(EQUAL * best, best - 2 * (1 - best**2) * error)
    near = sorted((name for name in skills if skills[name] >= least), key=lambda name: -skills[name])
    top = best if together is None else together[0]
    accepted = ["MAR", *(["MNAR"] if dataset.kinds[column] != "text" and skill >= top - 0.01 else [])]
    accepted += [] if firm or together else ["MCAR"]
    pair = list(together[1]) if together else []
    return {
        "column": column,
        "mechanism": "MAR",
        "depends_on": [*pair, *([name for name in near if name not in pair] if not pair or best >= EQUAL * top else [])]
        + [name for name in company if name not in (*pair, *near)],
        "together": pair,
        "planted": False,
        "half": ["MNAR"],
        "accepted": accepted,
        "unjudged": [],
    }


def _skill(gap: Array, groups: Array | None, view: View, known: Array) -> tuple[float, float]:
    """Return the correlation of a gap with its out-of-fold share among equal codes, on rows with known values, and the
    standard error of a zero correlation; rows of one group stay in one fold.
    """
    y = gap[known].astype(float)[:, None]
    among = None if groups is None else np.unique(groups[known], return_inverse=True)[1]
    fitted = cross_fitted(view.train[known], y, assign_folds(gap[known].astype(int), among, FOLDS, seed=0))
    error = float(np.sqrt(inflation(among, y, fitted)[0] / len(y)))
    return float(correlations(fitted, y, np.ones(len(y)))[0]), error


def _together(gap: Array, groups: Array | None, drivers: list[_Driver], skills: dict[str, float]) -> _Pair | None:
    """Return the pair that predicts the gap much better than any single column, and its skill."""
    first = sorted(drivers, key=lambda driver: -skills.get(driver.name, 0.0))[:MAX_PAIRED]
    least = max(2 * LEAST, *skills.values()) + JOINT if skills else 2 * LEAST + JOINT
    best: _Pair | None = None
    for a, b in itertools.combinations(first, 2):
        known = a.known & b.known
        if min((gap & known).sum(), (~gap & known).sum()) < 2 * FEWEST:
            continue
        left, right = _coarse(a.view), _coarse(b.view)
        joint = View("", left * (_GRID + 1) + right, left, (_GRID + 1) ** 2, False)
        skill, doubt = _skill(gap, groups, joint, known)
        if skill >= max(least, SURE_OF_PAIR * doubt) and (best is None or skill > best[0]):
            best = skill, (a.name, b.name)
    return best


def _coarse(view: View) -> Array:
    """Merge codes into at most `_GRID` + 1 ordered classes with about equal numbers of rows."""
    shares = np.cumsum(np.bincount(view.train, minlength=view.count)) / len(view.train)
    return np.asarray(np.minimum((shares * _GRID - 1e-9).astype(int), _GRID)[view.train])


def _by_value(
    dataset: Dataset, train: Frame, column: str, gap: Array, groups: Array | None
) -> tuple[float, float, float]:
    """Return the skill of the column's own value, predicted from the other columns and the target by a linear model,
    its error as in `_skill`, and the cross-validated correlation of this prediction with known values."""
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import cross_val_predict

    columns = {name: dataset.kinds[name] for name in dataset.features if name != column}
    y, codes = outputs(dataset, train)
    known = Rows(train, train.iloc[:1], columns, codes, dataset.problem != "regression", 0)
    design, values = np.hstack([matrices(known)[0], y]), train[column].to_numpy(dtype=float)[~gap]
    predicted = np.round(LinearRegression().fit(design[~gap], values).predict(design), 9)
    apart = cross_val_predict(LinearRegression(), design[~gap], values)
    fit = float(correlations(apart[:, None], values[:, None], np.ones(len(values)))[0])
    return *_skill(gap, groups, in_bins("", predicted, predicted, bins=_BINS), np.ones(len(gap), dtype=bool)), fit
