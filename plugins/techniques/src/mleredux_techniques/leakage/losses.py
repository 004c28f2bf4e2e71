"""Columns, and pairs of columns, that predict the target in the training table but not on the test set."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mleredux_techniques._kit.data.columns import is_free_text
from mleredux_techniques._kit.data.dataset import Array, Dataset
from mleredux_techniques._kit.data.skill import Judge, Skill, overlap
from mleredux_techniques._kit.data.structure import in_time, looks_like_time
from mleredux_techniques._kit.data.views import View, in_bins, of_values, views_of

LOST = 0.2
"""A column leaks if it loses this much skill on the test set, or less if nearly nothing is left."""
LOST_ALL = 0.12
LEFT = 0.4
SURE = 4.0
"""Minimum loss of a leak, in standard errors."""
TELLING = 0.15
"""Minimum skill of a column for comparisons with others."""
STRONG = 0.8
"""A column with this skill, kept on the test set, may leak there too, which the data can't show."""
MANY = 20
"""Columns with fewer values do not name new entities, such as customers, even if the test set has other values."""
STATES = 0.5
"""Columns with fewer values, all absent from the test set, are leaking states, not groups, from this skill on."""
MORE = 0.1
"""Minimum skill that a pair adds to its columns."""
MUCH_MORE = 0.3
MUCH_MORE_FREQUENT = 1.5
SAME_VALUES = 0.8
"""The test set counts as having other values if the effective share of training rows with its values is below this."""
MAX_PAIRED, MAX_SCREENED, MAX_BOOSTED = 24, 1_000, 5
"""Maximum number of columns of which all pairs are judged; maximum number of columns of which equally many pairs are
judged, after screening by boosted models; maximum number of outputs of these models."""
OVERLAP = 0.2
"""Minimum share of training rows with values of the test set, for the columns of a pair."""
CATEGORY, MAX_CATEGORIES = 5, 8
"""Minimum mean number of rows per category for category means, and maximum number of category columns."""
_GRID = 8
_GROWN = 2_000


Finding = tuple[tuple[str, ...], Skill]
"""The leaking columns, and the skill that they lose."""


def losses(dataset: Dataset) -> tuple[list[Finding], list[str]]:
    """Return leaks by columns and pairs, and the columns that predict the target on the test set too.

    Every column is judged by its views, then pairs of columns that do not leak by themselves.
    """
    judge = Judge(dataset)
    names, categories = [name for name in (*dataset.ids, *dataset.features) if name != dataset.time], _categories(judge)
    by_column = {name: _skills(judge, name, categories) for name in names}
    best = {name: max(skills, key=lambda skill: skill.inside) for name, skills in by_column.items() if skills}
    least = max(TELLING, SURE / np.sqrt(len(judge.y)))  # of many columns, some seem predictive by chance
    kept = {name: skill.outside / skill.inside for name, skill in best.items() if skill.inside >= least}
    if not _drifts(judge):  # without drift, all skills drop a little through label noise; those of leaks nearly vanish
        kept = {name: share for name, share in kept.items() if share > LEFT}
    leaks: list[Finding] = []
    for name, skills in by_column.items():
        retention = _retention([share for other, share in kept.items() if other != name])
        gone = [skill for skill in skills if leaking(skill, retention)]
        if gone:
            leaks.append(((name,), max(gone, key=lambda skill: skill.lost(retention))))
    alone = {columns[0]: skill.inside for columns, skill in leaks}
    strong = [name for name, skill in best.items() if skill.inside >= STRONG and skill.outside >= STRONG / 2]
    retention = _retention([share for name, share in kept.items() if name not in alone])
    singles = {name: best[name].inside if name in best else 0.0 for name in dataset.features}
    pairs = list(_pairs(judge, singles, alone, retention))
    paired = {name for columns, _skill in pairs for name in columns}
    unpaired = [(columns, skill) for columns, skill in leaks if columns[0] not in paired]
    return [*unpaired, *pairs], [name for name in strong if name not in alone]


def _drifts(judge: Judge) -> bool:
    """Return whether the test set differs in some column's values, in class shares, or in groups or times."""
    data = judge.dataset
    if data.time is not None or data.group is not None or judge.weights.max() > MUCH_MORE_FREQUENT:
        return True
    views = (_coarse(data, name) for name in data.features)
    return any(overlap(view) < SAME_VALUES for view in views if view.count <= 2 * _GRID and not view.flat)


def leaking(skill: Skill, retention: float) -> bool:
    """Return whether a skill is lost on the test set, beyond the loss of others and beyond chance."""
    lost = skill.lost(retention)
    if lost <= SURE * skill.error or skill.inside < TELLING:
        return False
    return lost > LOST or (lost > LOST_ALL and skill.outside < LEFT * retention * skill.inside)


def _retention(shares: list[float]) -> float:
    """Return the share of skill that other columns keep on the test set; 1 if too few are predictive."""
    return float(np.clip(np.quantile(shares, 0.75), 0.1, 1.0)) if len(shares) >= 2 else 1.0


def _skills(judge: Judge, name: str, categories: list[str]) -> list[Skill]:
    """Return the skill of each predictive view of a column.

    If the test set has other values than the training table, such as new customers, only known ones count; if most
    values are new, equal values stay in one fold.
    """
    data = judge.dataset
    train, test = data.train[name], data.test[name]
    folds, seen = None, None
    if judge.ahead and test.nunique() > 1:  # nothing shows how predictive values of later times would have been before
        later, earlier = (in_time(values) for values in (test, train))
        seen = (later.between(earlier.min(), earlier.max()) | later.isna()).to_numpy()
        if seen.sum() < max(50, 0.3 * len(seen)):
            return []
    if data.group is not None and data.group.column == name and data.kinds[name] == "text" and train.nunique() < MANY:
        view = of_values("equal values", *(values.fillna("").to_numpy(dtype=object) for values in (train, test)))
        state = Judge(replace(data, group=None)).skill(view)
        return [state] if state.inside >= STATES and (view.test == view.count).mean() > 1 - LOST_ALL else []
    if train.nunique() <= len(train) // 2 and test.nunique() > 1 and judge.groups is None and not judge.ahead:
        known = test.isin(train.unique()).to_numpy() | test.isna().to_numpy()
        if known.sum() < max(50, 0.3 * len(known)) and train.nunique() >= MANY:
            folds = judge.folds_of(np.unique(train.astype(str).to_numpy(dtype=str), return_inverse=True)[1])
        elif not known.all() and known.any():
            seen = known
    views = views_of(train, test, data.kinds[name])
    if judge.groups is None and not judge.ahead:
        views = itertools.chain(views, _statistics(data, name, categories))
    telling = (view for view in views if judge.inside(view, folds).max() >= TELLING)
    skills = [judge.skill(view, folds, seen) for view in telling]
    if data.kinds[name] == "text" and is_free_text(train):
        skills.append(judge.skill_of_prose(*(values.fillna("").astype(str) for values in (train, test))))
    return skills


def _statistics(data: Dataset, name: str, categories: list[str]) -> Iterator[View]:
    """Return views that depend on other rows: the frequency of a value, and a number's distance from the mean of its
    category, which reveals statistics that exclude the row itself.
    """
    train, test = data.train[name], data.test[name]
    if train.nunique() <= len(train) // 2:
        counts = train.value_counts()
        yield in_bins("frequency", *(values.map(counts).to_numpy(dtype=float) for values in (train, test)))
    if data.kinds[name] != "number" or train.nunique() < MANY:
        return
    for other in [category for category in categories if category != name][:MAX_CATEGORIES]:
        means = train.groupby(data.train[other]).mean()
        apart = ((frame[name] - frame[other].map(means)).to_numpy(dtype=float) for frame in (data.train, data.test))
        # test rows are not part of the means, so their distances differ, which drift does not explain
        yield replace(in_bins(f"distance from the mean of its {other}", *apart), flat=True)


def _categories(judge: Judge) -> list[str]:
    """Return columns that may name categories: texts and integers with repeating values that do not leak themselves, as
    the distances from their means would leak, too.
    """
    data, repeat = judge.dataset, len(judge.y) // CATEGORY
    whole = [name for name in data.of_kind("number") if not (data.train[name].dropna() % 1 != 0).any()]
    names = [name for name in (*data.of_kind("text"), *whole) if 2 <= data.train[name].nunique() <= repeat]
    return [name for name in names if not leaking(judge.skill(_coarse(data, name)), 1.0)]


def _pairs(judge: Judge, singles: dict[str, float], alone: dict[str, float], retention: float) -> Iterator[Finding]:
    """Return pairs that leak together, the strongest first, with each column in at most one.

    A column that leaks by itself is in no pair, unless the pair is much more predictive.
    """
    pairs: list[Finding] = []
    coarse = {
        name: _coarse(judge.dataset, name)
        for name in singles
        if alone.get(name, 0.0) < 1 - MUCH_MORE and judge.dataset.train[name].nunique() > 1
    }
    usable = {name: view for name, view in coarse.items() if overlap(view) > OVERLAP}
    numbers = {name: _numbers(judge.dataset, name) for name in usable}
    for a, b in _interacting(judge, usable):
        least = max(singles[a], singles[b]) + (MUCH_MORE if alone.keys() & {a, b} else MORE)
        for view in _views_of_pair(judge, (a, b), coarse, numbers):
            if _apparent(judge, view) < max(least, LOST_ALL) or judge.inside(view).max() < max(least, TELLING):
                continue
            skill = judge.skill(view)
            if skill.outside < LEFT * retention * skill.inside and leaking(skill, retention):
                pairs.append(((a, b), skill))
    used: set[str] = set()
    for columns, skill in sorted(pairs, key=lambda finding: -finding[1].lost(retention)):
        if not used & set(columns):
            used |= set(columns)
            yield columns, skill


def _interacting(judge: Judge, coarse: dict[str, View]) -> Iterator[tuple[str, str]]:
    """Yield all pairs of a few columns; of many, those whose cells explain most of the residuals of boosted models.

    These models are additive, so that pairs and noise remain. As in FAST: Y. Lou et al.,
    "Accurate Intelligible Models with Pairwise Interactions", KDD 2013.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    if len(coarse) <= MAX_PAIRED:
        yield from itertools.combinations(coarse, 2)
        return
    kept = set(sorted(coarse, key=lambda name: -_apparent(judge, coarse[name]))[:MAX_SCREENED])
    names = [name for name in coarse if name in kept]
    rows = np.linspace(0, len(judge.y) - 1, min(len(judge.y), _GROWN)).astype(int)
    bins = int(np.clip(MAX_SCREENED // len(names), 2, _GRID))
    ranges = [in_bins(name, coarse[name].train[rows].astype(float), np.zeros(0), bins=bins).train for name in names]
    codes = np.stack([np.unique(held, return_inverse=True)[1] for held in ranges], axis=1)
    cells = np.hstack([np.eye(held.max() + 1, dtype=np.float32)[held] for held in codes.T])
    first = np.cumsum([0, *codes.max(axis=0) + 1])[:-1]
    sizes, scores = cells.T @ cells, np.full((len(names), len(names)), -np.inf)
    for y in judge.y[rows].T[:MAX_BOOSTED]:
        model = HistGradientBoostingRegressor(max_leaf_nodes=4, interaction_cst="no_interactions", random_state=0)
        left = (y - model.fit(codes, y).predict(codes)).astype(np.float32)
        explained = ((cells * left[:, None]).T @ cells) ** 2 / np.maximum(sizes, 1) / left.var() - (sizes > 0)
        scores = np.maximum(scores, np.add.reduceat(np.add.reduceat(explained, first, axis=0), first, axis=1))
    lower, upper = np.triu_indices(len(names), 1)
    for place in np.argsort(-scores[lower, upper], kind="stable")[: MAX_PAIRED * (MAX_PAIRED - 1) // 2]:
        yield names[lower[place]], names[upper[place]]


def _views_of_pair(
    judge: Judge, pair: tuple[str, str], coarse: dict[str, View], numbers: dict[str, tuple[Array, Array] | None]
) -> Iterator[View]:
    """Return a grid of both columns; for numbers also sum, difference, product and ratio; for dates their distance; for
    texts their equality.
    """
    data = judge.dataset
    a, b = pair
    left, right = coarse[a], coarse[b]
    size = left.count * right.count
    if left.count > 1 and right.count > 1 and size <= len(left.train) // 8:
        known = (left.test < left.count) & (right.test < right.count)
        joint = np.where(known, left.test * right.count + right.test, size)
        flat = left.flat and right.flat
        yield View("together", left.train * right.count + right.train, joint, size, flat)
    if data.kinds[a] == data.kinds[b] == "text":
        yield of_values("equal", *((frame[a] == frame[b]).to_numpy() for frame in (data.train, data.test)))
    mine, other = numbers[a], numbers[b]
    if mine is None or other is None:
        return
    (xa, ya), (xb, yb) = mine, other
    middle = float(np.nanmean(xa)), float(np.nanmean(xb))
    with np.errstate(all="ignore"):
        yield in_bins("difference", xa - xb, ya - yb)
        if "text" in (data.kinds[a], data.kinds[b]):
            return
        yield in_bins("sum", xa + xb, ya + yb)
        yield in_bins("product", (xa - middle[0]) * (xb - middle[1]), (ya - middle[0]) * (yb - middle[1]))
        ours, theirs = (np.where(over != 0, part / over, np.nan) for part, over in ((xa, xb), (ya, yb)))
        yield in_bins("ratio", ours, theirs)


def _numbers(data: Dataset, name: str) -> tuple[Array, Array] | None:
    """Return the numbers or dates of both tables; None for other texts."""
    train, test = data.train[name], data.test[name]
    if data.kinds[name] == "text" and not looks_like_time(train):
        return None
    return in_time(train).to_numpy(dtype=float), in_time(test).to_numpy(dtype=float)


def _coarse(data: Dataset, name: str) -> View:
    train, test = data.train[name], data.test[name]
    numbers = _numbers(data, name)
    if numbers is None:
        return of_values(name, train.fillna("").to_numpy(dtype=object), test.fillna("").to_numpy(dtype=object))
    return of_values(name, *numbers) if train.nunique() <= _GRID else in_bins(name, *numbers, bins=_GRID)


def _apparent(judge: Judge, view: View) -> float:
    """Return an upper estimate of the skill, without cross-validation."""
    sizes = np.maximum(np.bincount(view.train, minlength=view.count), 1)
    shares = [
        (np.bincount(view.train, y, view.count) ** 2 / sizes).sum() / max(float(y @ y), 1e-12)
        for y in (judge.y - judge.prior).T
    ]
    return float(np.sqrt(max(shares)))
