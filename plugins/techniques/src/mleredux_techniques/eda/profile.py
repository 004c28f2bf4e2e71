"""Column profiles: type, numbers that stand for missing values, relation with the target, and drift."""

from __future__ import annotations

import numpy as np

from mleredux_techniques._kit.data.association import spearman
from mleredux_techniques._kit.data.columns import amounts, is_free_text
from mleredux_techniques._kit.data.dataset import Array, Dataset, Series
from mleredux_techniques._kit.data.skill import Judge
from mleredux_techniques._kit.data.splits import group_codes
from mleredux_techniques._kit.data.structure import in_time, looks_like_time
from mleredux_techniques._kit.data.views import in_bins, views_of
from mleredux_techniques.eda.document import ColumnType

MANY = 10
REPEATED, APART = 0.005, 0.1
"""Minimum share of rows with a sentinel, and minimum gap of a possible one, relative to the others' range."""
TELLING, OPEN = 0.15, 0.05
BENT, STRAIGHT = 0.6, 0.8
DRIFTS = (0.08, 0.12)
CHANCE, CHANCE_SURE = 1e-2, 1e-5


def type_of(values: Series, kind: str) -> ColumnType:
    """Return the type of a column of the training table."""
    if values.nunique() <= 1:
        return "constant"
    if kind != "text":
        return "boolean" if kind == "boolean" else "number"
    if looks_like_time(values):
        return "date"
    if amounts(values, MANY) is not None:
        return "number_as_text"
    return "text" if is_free_text(values) else "category"


def sentinels(values: Array) -> tuple[list[float], bool]:
    """Return numbers that stand for missing values, and whether others may do so: a repeated minimum or maximum whose
    distance from the other values exceeds their range.
    """
    known, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    numbers, unsure = [], False
    if len(known) > MANY:
        for end, near, others in ((0, 1, known[1:]), (-1, -2, known[:-1])):
            gap, reach = abs(known[end] - known[near]), np.ptp(others)
            if counts[end] >= max(5, REPEATED * counts.sum()):
                # for amounts over several orders of magnitude, distance counts only if it shows in logarithms
                logs = np.log1p(known) if known[0] >= 0 else known
                far = gap > reach and abs(logs[end] - logs[near]) > abs(logs[near] - logs[-1 - end])
                numbers += [float(known[end])] if far else []
                unsure |= (APART * reach < gap and not far) or bool(known[end] < 0 <= others[0] and not far)
    return numbers, unsure


def relation(judge: Judge, name: str) -> tuple[float, list[str], float | None]:
    """Return the skill of a column, the accepted forms of its relation with the target, and, for a non-monotone number,
    the best center for a distance.
    """
    data = judge.dataset
    ours, theirs = data.train[name], data.test[name]
    outputs = 1 if data.problem == "regression" else judge.y.shape[1]
    if data.kinds[name] != "number":
        strengths = [float(judge.inside(view)[:outputs].max()) for view in views_of(ours, theirs, data.kinds[name])]
        return max(strengths), ["values"], None
    values = ours.to_numpy(dtype=float)
    by_output = judge.inside(in_bins("value", values, theirs.to_numpy(dtype=float)))[:outputs]
    known = ~np.isnan(values)
    skill, y, held = float(by_output.max()), judge.y[known, int(by_output.argmax())], values[known]
    share = spearman(held, y) / max(skill, 1e-9)
    if share > STRAIGHT:
        return skill, ["monotone"], None
    center = max(np.quantile(held, np.linspace(0.1, 0.9, 17)), key=lambda place: spearman(np.abs(held - place), y))
    return skill, ["nonmonotone"] if share < BENT else ["monotone", "nonmonotone"], float(center)


def drift(dataset: Dataset, name: str, kind: ColumnType) -> tuple[float, bool, bool]:
    """Return the distance between a column's two distributions, whether they differ, and whether that is undecided.

    The p-value of a distance is that of the two-sample Kolmogorov-Smirnov test (N. Smirnov, "Table for Estimating the
    Goodness of Fit of Empirical Distributions", 1948), or of a difference of two shares (with Bonferroni correction);
    rows of a group count once. If only that makes a difference small, it is undecided: the column may follow from the
    group, such as a period.
    """
    from scipy.stats import ks_2samp, kstwobign, norm

    frames = dataset.train, dataset.test
    sizes = [[len(np.unique(group_codes(dataset, frame))) for frame in frames], [*map(len, frames)]]
    counts = np.array([a * b / (a + b) for a, b in sizes])
    if kind in ("number", "date", "text"):
        columns = [frame[name].dropna() for frame in frames]
        columns = [values.astype(str).str.len() if kind == "text" else in_time(values).dropna() for values in columns]
        if not all(map(len, columns)):
            return 0.0, False, True
        distance = float(ks_2samp(*columns, method="asymp").statistic)
        chance, of_rows = kstwobign.sf(distance * np.sqrt(counts))
    else:
        mine, other = (frame[name].fillna("").astype(str).value_counts(normalize=True) for frame in frames)
        if other[~other.index.isin(mine.index)].sum() > 0.5 and kind != "constant":
            return 0.0, False, True  # names, such as those of groups
        both, apart = mine.add(other, fill_value=0.0) / 2, mine.sub(other, fill_value=0.0).abs()
        errors = float((apart / np.sqrt((both * (1 - both)).clip(lower=1e-9))).max()) * np.sqrt(counts)
        distance = float(apart.max())
        chance, of_rows = 2 * norm.sf(errors) * len(apart)
    differs = bool(distance > sum(DRIFTS) / 2 and chance < CHANCE)
    certain = distance < DRIFTS[0] or of_rows > CHANCE or (distance > DRIFTS[1] and chance < CHANCE_SURE)
    return round(distance, 4), differs, not certain
