"""How the test set was split off: by group, by time, or at random. The evidence is the split, not the names of
columns.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Dataset, Frame, GroupColumn, Series, remembered

SEPARATORS = ("_", "-", "/", ":")
MAX_SHARED = 0.02
"""Maximum share of test rows whose group occurs in the training table, for a split by group."""
MOST_ROWS = 0.5
"""Minimum share of the rows that have a group."""
MIN_ROWS_A_GROUP = 1.5
MIN_GROUPS = 4
CHANCE = 1e-6
"""Maximum probability that a random split has the same order."""
MAX_PAIRED = 12
KNOWN = 0.8
"""Minimum share of test rows whose value occurs in the training table, for each column of a pair."""
WITHIN = 0.95
"""Minimum share of groups whose test rows are all later than their training rows, for a split by time within groups;
also of groups that end before the next one begins, for groups that follow from the time."""
_SMOOTH = 30
_DATE = (
    r"^\d{4}[-/.]?\d{2}[-/.]?\d{2}|^\d{4}[-/]\d{1,2}$|^\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|^\d{1,2}-\d{1,2}-\d{4}"
    r"|^\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4}|^[A-Za-z]{3,9} \d{1,2},? \d{4}|^[A-Za-z]{3,9}[- ]\d{4}$"
)
_PERIOD = r"^(?P<year>\d{4})[- ]?(?P<kind>[QqWw])(?P<number>\d{1,2})$"
"""Quarters and weeks: 2019Q3, 2019-W07."""
_DAYS = {"q": 91.3, "w": 7.0}


@dataclass(frozen=True)
class Structure:
    """How the test set was split off.

    Attributes:
        group: The coarsest key of rows that were kept together.
        groups: All keys of rows that were kept together, the coarsest first.
        time: The column that puts test rows after training rows.
        times: All columns that put test rows after training rows.
        falling: The columns of `times` that decrease over time: the test set has the smallest values.
        within: The column of the groups within which test rows are later; None if they are later than all training
            rows.
        alternative: The key of a column, such as numbered periods, that may be either a group or a time.
    """

    group: GroupColumn | None = None
    time: str | None = None
    times: tuple[str, ...] = ()
    falling: tuple[str, ...] = ()
    within: str | None = None
    alternative: GroupColumn | None = None
    groups: tuple[GroupColumn, ...] = ()


def structure_of(dataset: Dataset) -> Structure:
    """Find the groups and the time order by which the test set was split off, if any."""
    falling = separated(dataset, falling=True)
    times = separated(dataset) + falling
    dated = [name for name in times if looks_like_time(dataset.train[name])]
    whole = [name for name in times if name not in dated and _is_grouping(dataset, name)]
    keys = group_columns(dataset, without=set(times))
    groups = tuple(key for key in keys if not any(_in_sequence(dataset, key, name) for name in times))
    group, within = next(iter(groups), None), None
    if not times and group is None and (nested := _later_within(dataset)):
        times, within = [nested[0]], nested[1]
        falling = times if nested[2] else []
    named_groups = [name for name in whole if _is_rough(dataset, name)]
    ordered = [*dated, *(name for name in times if name not in dated and name not in named_groups)]
    if not ordered and group is None and named_groups:
        key = GroupColumn(named_groups[0])
        return Structure(key, None, tuple(times), tuple(falling), None, key, (key,))
    alternative = GroupColumn(whole[0]) if whole and group is None else None
    return Structure(group, next(iter(ordered), None), tuple(times), tuple(falling), within, alternative, groups)


def separated(dataset: Dataset, *, falling: bool = False) -> list[str]:
    """Return numeric and date columns in which (nearly) all test rows follow the training rows; dates first.

    Args:
        falling: Whether to return columns whose smallest values are the latest, without ids, which count upward.
    """
    names = []
    for name in (*dataset.features, *(() if falling else dataset.ids)):
        train, test = (-frame if falling else frame for frame in _moments_of(dataset, name))
        if min(len(train), len(test)) < 0.5 * min(len(dataset.train), len(dataset.test)) or train.nunique() <= 2:
            continue
        if follows(train, test) and _chance(len(train), len(test)) < CHANCE:
            names.append(name)
    return sorted(names, key=lambda name: (dataset.kinds[name] != "text", name in dataset.ids))


def follows(train: Series, test: Series) -> bool:
    """Return whether all but 2 % of the test times are at or after all but 2 % of the training times."""
    first, last = np.quantile(test, MAX_SHARED), np.quantile(train, 1 - MAX_SHARED)
    return bool(first >= last and first > train.median() and test.max() > train.max())


def _chance(train: int, test: int) -> float:
    """Return the probability that a randomly drawn test set consists of exactly the last rows."""
    few = max(1, int(test * (1 - 2 * MAX_SHARED)))
    return math.exp(math.lgamma(few + 1) + math.lgamma(train + 1) - math.lgamma(train + few + 1))


def _is_grouping(dataset: Dataset, name: str) -> bool:
    """Return whether values repeat within the training table and do not occur in the test set."""
    return _kept_together(dataset, _codes(dataset, GroupColumn(name))) is not None


def _in_sequence(dataset: Dataset, key: GroupColumn, time: str) -> bool:
    """Return whether groups follow from the time: (nearly) each ends before the next one begins, and times have several
    rows, each of one group. Any split by time keeps such groups together.
    """
    times = in_time(dataset.train[time])
    spans = times.groupby(key.of(dataset.train)).agg(["min", "max"]).sort_values("min").to_numpy()
    return bool(len(times) >= MIN_ROWS_A_GROUP * times.nunique() and (spans[:-1, 1] < spans[1:, 0]).mean() >= WITHIN)


def _is_rough(dataset: Dataset, name: str) -> bool:
    """Return whether rows are similar within a value but not across neighboring values: groups, not a time."""
    from scipy.stats import rankdata

    values = dataset.train[name].dropna()
    codes = np.unique(values.to_numpy(dtype=float), return_inverse=True)[1]
    sizes = np.bincount(codes)
    numbers = [other for other in dataset.of_kind("number") if other != name][:_SMOOTH]
    columns = [dataset.train.loc[values.index, other].to_numpy(dtype=float) for other in numbers]
    target = dataset.train.loc[values.index, dataset.target]
    numeric = target if dataset.problem == "regression" else target == target.value_counts().index[0]
    columns.append(numeric.to_numpy(dtype=float))
    rough = smooth = 0.0
    for column in columns:
        ranked = rankdata(np.nan_to_num(column, nan=np.nanmedian(column) if not np.isnan(column).all() else 0.0))
        spread = ranked.std()
        if not spread:
            continue
        means = np.bincount(codes, (ranked - ranked.mean()) / spread) / sizes
        excess = max(0.0, float((means**2).mean() * len(means) / (1 / sizes).sum()) - 1.5)
        varied = means.std() and len(means) > 3
        alike = float(np.clip(np.corrcoef(means[:-1], means[1:])[0, 1], 0, 1)) if varied else 0.0
        rough, smooth = rough + excess * (1 - alike), smooth + excess * alike
    return rough > smooth and rough > 1


def group_columns(dataset: Dataset, *, without: set[str] | None = None) -> list[GroupColumn]:
    """Find the groups that the split kept together: values (or pairs of values of two columns) that repeat within the
    training table, while (nearly) none of these rows shares its value with a test row.

    The first key is the coarsest one whose groups never cross the split; it contains the finer ones.

    Args:
        without: Columns to exclude, such as time columns.
    """
    keys = [key for key in candidates(dataset) if key.column not in (without or set())]
    codes, rows = {key: _codes(dataset, key) for key in keys}, len(dataset.train)
    ranked = [(rank, place) for place, key in enumerate(keys) if (rank := _kept_together(dataset, codes[key]))]
    if ranked:
        return [keys[place] for _rank, place in sorted(ranked)]
    known = {key: np.isin(held[rows:], held[:rows][held[:rows] >= 0]).mean() for key, held in codes.items()}
    plain = [key for key in keys if key.separator is None and codes[key].max() >= MIN_GROUPS and known[key] >= KNOWN]
    pairs = list(itertools.combinations(plain[:MAX_PAIRED], 2))
    both = []
    for place, (a, b) in enumerate(pairs):
        joint = np.where((codes[a] < 0) | (codes[b] < 0), -1, codes[a] * (codes[b].max() + 1) + codes[b])
        if rank := _kept_together(dataset, joint):
            both.append((rank, place))
    return [GroupColumn(pairs[place][0].column, second=pairs[place][1].column) for _rank, place in sorted(both)[:1]]


def _codes(dataset: Dataset, key: GroupColumn) -> Array:
    """Return the group of each row as a number, training groups first; -1 if it is missing."""
    import pandas as pd

    texts = pd.concat([key.of(dataset.train), key.of(dataset.test)], ignore_index=True)
    return np.asarray(pd.factorize(texts.where(texts != "", None))[0], dtype=np.int64)


def _kept_together(dataset: Dataset, codes: Array) -> tuple[bool, int] | None:
    """Return whether any test row shares its group with training rows, and the number of training groups; None if the
    split did not keep groups together.

    The criterion counts rows, not values: most rows must have a group, and one large group does not suffice.
    """
    train, test = codes[: len(dataset.train)], codes[len(dataset.train) :]
    sizes = np.bincount(train[train >= 0], minlength=codes.max(initial=0) + 1)
    known, tested = np.flatnonzero(sizes), test[test >= 0]
    if len(known) < MIN_GROUPS or len(np.unique(tested)) < 2:
        return None
    if min((train >= 0).mean(), (test >= 0).mean()) < MOST_ROWS:
        return None
    if (sizes.sum() - sizes.max()) < MIN_ROWS_A_GROUP * (len(known) - 1):
        return None
    shared = float((sizes[tested] > 0).mean())
    return (shared > 0, len(known)) if shared <= MAX_SHARED else None


def candidates(dataset: Dataset) -> list[GroupColumn]:
    """Return keys that could name groups: columns whose values repeat, including the part of text before or after a
    separator, and the day of a timestamp.
    """
    keys = []
    for name in (*dataset.ids, *dataset.features):
        values = dataset.train[name].dropna()
        kind = dataset.kinds[name]
        if not len(values) or kind == "boolean":
            continue
        if len(values) >= MIN_ROWS_A_GROUP * values.nunique():
            keys.append(GroupColumn(name))
        if kind == "text":
            head, timed = values.head(1_000), looks_like_time(dataset.train[name])
            for mark in (" ", "T") if timed else SEPARATORS:
                if head.str.contains(mark, regex=False).mean() > 0.95:
                    keys += [GroupColumn(name, mark, after=after) for after in (False, True) if not (timed and after)]
    return keys


def _later_within(dataset: Dataset) -> tuple[str, str, bool] | None:
    """Return the column that puts test rows last within each group, the group column, and whether the last rows have
    the smallest values.

    In a group of n training and m test rows, a random split gives this order with probability n! m! / (n + m)!.
    """
    import pandas as pd

    orders = [(name, sign) for name in (*dataset.features, *dataset.ids) if (sign := _order(dataset, name))]
    for key in [key for key in candidates(dataset) if key.separator is None and key.second is None]:
        ours, theirs = key.of(dataset.train), key.of(dataset.test)
        if len(set(ours) & set(theirs)) < 10 or ours.nunique() * 3 > len(ours):
            continue
        for name, sign in [order for order in orders if order[0] != key.column]:
            last = (sign * in_time(dataset.train[name])).groupby(ours).max()
            first = (sign * in_time(dataset.test[name])).groupby(theirs).min()
            both = pd.concat([last, first, ours.value_counts(), theirs.value_counts()], axis=1, join="inner").dropna()
            if len(both) < 10 or (both.iloc[:, 1] > both.iloc[:, 0]).mean() < WITHIN:
                continue
            logs = [math.log(_chance(int(n), int(m))) for n, m in both.iloc[:, 2:].itertuples(index=False)]
            if sum(logs) < math.log(CHANCE):
                return name, key.column, sign < 0
    return None


def _order(dataset: Dataset, name: str) -> int:
    """Return 1 if a column has many distinct numbers or dates that are higher in the test set, -1 if they are lower,
    and 0 otherwise.
    """
    train, test = _moments_of(dataset, name)
    if train.nunique() < MIN_GROUPS or not len(test):
        return 0
    error = math.sqrt(train.var() * (1 / len(train) + 1 / len(test)))
    apart = test.mean() - train.mean()
    return int(np.sign(apart)) if abs(apart) > 4 * error else 0


def _moments_of(dataset: Dataset, name: str) -> list[Series]:
    """Return the known numbers or dates of a column in the training and the test table; none of other columns."""

    def find() -> list[Series]:
        ours, theirs = dataset.train[name], dataset.test[name]
        if dataset.kinds[name] == "boolean" or (dataset.kinds[name] == "text" and not looks_like_time(ours)):
            return [ours[:0].astype(float)] * 2
        return [in_time(values).dropna() for values in (ours, theirs)]

    return remembered(dataset, f"moments of {name}", find)


def moments(dataset: Dataset, frame: Frame) -> Series:
    """Return the time of each row as numbers that increase over time, from the dataset's time column."""
    assert dataset.time is not None
    passed = in_time(frame[dataset.time])
    return -passed if dataset.falling else passed


def looks_like_time(values: Series) -> bool:
    """Return whether a text column contains dates."""
    if values.dtype.kind in "ifub":
        return False
    known = values.dropna().head(500).astype(str)
    dates = known.str.contains(_DATE, regex=True) | known.str.match(_PERIOD)
    return bool(len(known)) and bool(dates.mean() > 0.95)


def in_time(values: Series) -> Series:
    """Return dates as seconds since 1970, numbers unchanged, anything else as NaN."""
    import pandas as pd

    if values.dtype.kind in "ifub":
        return values.astype(float)
    if (periods := values.dropna().astype(str).str.extract(_PERIOD)).notna().all(axis=1).mean() > 0.95:
        passed = (periods["number"].astype(float) - 1) * periods["kind"].str.lower().map(_DAYS)
        passed += (periods["year"].astype(float) - 1970) * 365.2425
        seconds: Series = (passed * 86_400).reindex(values.index)
        return seconds
    # 25/03/2021 shows that 04/03/2021 is a day in March
    first = values.dropna().astype(str).str.extract(r"^(\d{1,2})[-/.]\d{1,2}[-/.]\d{2,4}", expand=False)
    days = bool((pd.to_numeric(first) > 12).any())
    moments = pd.to_datetime(values, errors="coerce", utc=True, format="mixed", dayfirst=days)
    return (moments - pd.Timestamp("1970-01-01", tz="UTC")).dt.total_seconds()
