"""Rows for evaluating recommendations, samples of large tables, and splits that do not depend on library versions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from mleredux.errors import NotApplicable

from mleredux_techniques._kit.data.dataset import MAX_TEST_ROWS, MAX_TRAIN_ROWS, Array, Dataset, Frame
from mleredux_techniques._kit.data.structure import moments

FOLDS = 5
REPEATS = 2
"""Number of repeated splits into folds; each held-out part has its own seed for models and strategies."""
MAX_ROWS = 4_000
"""Larger tables are sampled down to this number of rows, which bounds grading to 6 seconds of CPU time."""
_SEED = 20_240_601
FUTURE = 0.3
"""Share of the training rows held out as the future, if test rows are later than training rows."""


@dataclass(frozen=True)
class Split:
    """Row numbers of a pool for training and for evaluation, with a random seed."""

    train: Array
    """Row numbers for training, shape `(n,)`."""
    held_out: Array
    """Row numbers for evaluation, shape `(m,)`."""
    seed: int
    """The random seed for models on this split."""


@dataclass(frozen=True)
class Pool:
    """Training rows with splits that mimic the split into training and test rows.

    Attributes:
        frame: The rows; the index is 0 … n-1.
        y: Outputs of the reference models, of shape (rows, outputs): one-hot classes, or the standardized number.
        codes: The class of each row, or the number itself.
        names: The class of each code; empty for numbers.
        overlap: Ratio of held-out rows to training rows of a split.
        sample: One sentence about how the rows were sampled; empty if all are used.
    """

    dataset: Dataset
    """The dataset that the rows come from."""
    frame: Frame
    y: Array
    codes: Array
    names: tuple[str, ...]
    splits: tuple[Split, ...] = ()
    """The splits, ordered by seed."""
    overlap: float = 0.0
    sample: str = ""
    rows: Array | None = None
    """The rows' numbers in the training table; None if others are among them."""


def pool(
    dataset: Dataset, *, max_rows: int = MAX_ROWS, count: int = FOLDS, repeats: int = REPEATS, seed: int = 0
) -> Pool:
    """Return the pool of a dataset: its training rows, repeatedly split into `count` folds, each held out once.

    Private test rows are not used, since these measurements may reach runs that are graded on them. Classes have the
    same share in all folds; rows of one group stay together; if test rows are later than training rows, a part of the
    later training rows is held out and a part of the earlier ones is used for training.

    Args:
        seed: Seed of the folds; different seeds split the same rows differently.
    """
    whole = dataset.train
    groups = group_codes(dataset, whole)
    rows = draw(groups, len(whole), max_rows, seed=0)
    frame = whole.iloc[rows].reset_index(drop=True)
    sample = dataset.sample
    if len(rows) < len(whole):
        sample = f"{sample} Strategies were executed on {len(rows)} of {len(whole)} training rows, drawn at random."
    data = replace(pool_of(dataset, frame), sample=sample.strip(), rows=rows)
    seeds = range(seed * repeats, (seed + 1) * repeats)
    if dataset.time is not None and len(rows) >= 4 * count:
        later = latest(dataset, frame, FUTURE)
        parts = tuple(_future(later, base * count + number) for base in seeds for number in range(count))
        return replace(data, splits=parts, overlap=0.5)
    strata = data.codes if dataset.problem != "regression" else np.zeros(len(rows), dtype=int)
    folds = [assign_folds(strata, groups[rows] if dataset.group else None, count, seed=base) for base in seeds]
    parts = tuple(
        Split(np.flatnonzero(held != k), np.flatnonzero(held == k), seed=place * count + k)
        for place, held in zip(seeds, folds, strict=True)
        for k in range(count)
        if (held == k).any()
    )
    return replace(data, splits=parts, overlap=1 / (count - 1))


def pool_of(dataset: Dataset, frame: Frame, *splits: Split) -> Pool:
    """Return a pool of rows with their outputs."""
    y, codes = outputs(dataset, frame)
    names = () if dataset.problem == "regression" else class_names(dataset)
    return Pool(dataset, frame, y, codes, names, splits)


def latest(dataset: Dataset, frame: Frame, share: float) -> Array:
    """Return whether each row is among the latest, by the dataset's time column; by position if all times are equal."""
    passed = moments(dataset, frame).fillna(0.0).to_numpy()
    later: Array = passed > np.quantile(passed, 1 - share)
    return later if later.any() else np.arange(len(frame)) >= (1 - share) * len(frame)


def class_names(dataset: Dataset) -> tuple[str, ...]:
    """Return the classes of both tables, sorted."""
    return tuple(sorted({*dataset.train[dataset.target].astype(str), *dataset.test[dataset.target].astype(str)}))


def outputs(dataset: Dataset, frame: Frame) -> tuple[Array, Array]:
    """Return the outputs of the reference models, and class codes (or the numbers)."""
    if dataset.problem == "regression":
        numbers = frame[dataset.target].to_numpy(dtype=float)
        return ((numbers - numbers.mean()) / (numbers.std() + 1e-12))[:, None], numbers
    names = np.array(class_names(dataset))
    codes = np.searchsorted(names, frame[dataset.target].astype(str).to_numpy(dtype=str))
    return np.eye(len(names))[codes], codes


def group_codes(dataset: Dataset, frame: Frame) -> Array:
    """Return the group of each row as a number; without groups, each row is its own."""
    if dataset.group is None:
        return np.arange(len(frame))
    return np.unique(dataset.group.of(frame).to_numpy(dtype=str), return_inverse=True)[1]


def draw(groups: Array, rows: int, most: int, *, seed: int) -> Array:
    """Return the sorted indices of at most `most` rows; groups are drawn whole, as long as they fit.

    Raises:
        NotApplicable: Fewer than half of the rows would be used, because groups are too large.
    """
    if rows <= most:
        return np.arange(rows)
    rng = np.random.default_rng(seed)
    names, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    kept, count = np.zeros(len(names), dtype=bool), 0
    for place in rng.permutation(len(names)):
        if count + sizes[place] <= most:
            kept[place], count = True, count + int(sizes[place])
    if count < most / 2:
        raise NotApplicable(
            f"Advice can't be executed on these tables: the split kept groups together; the largest has "
            f"{sizes.max():,} rows, and groups that fit into {most:,} rows contain only {count:,} of the {rows:,} rows."
        )
    return np.flatnonzero(kept[members])


def assign_folds(strata: Array, groups: Array | None, count: int, *, seed: int) -> Array:
    """Return the fold of each row: shuffled within each stratum and assigned round-robin; groups stay together."""
    rng = np.random.default_rng(seed)
    if groups is not None:
        names, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        filled, fold_of = np.zeros(count), np.zeros(len(names), dtype=int)
        order = rng.permutation(len(names))
        for group in order[np.argsort(-sizes[order], kind="stable")]:  # like GroupKFold: large groups first
            fold_of[group] = filled.argmin()
            filled[fold_of[group]] += sizes[group]
        return fold_of[members]
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    folds = np.empty(len(strata), dtype=int)
    folds[order] = np.arange(len(strata)) % count
    return folds


def parts_of(rows: int, most: int = 10) -> list[Array]:
    """Split test rows into parts of at least 20 rows if possible, on each of which a metric is computed."""
    return np.array_split(np.random.default_rng(0).permutation(rows), int(np.clip(rows // 20, 2, most)))


def _future(later: Array, seed: int) -> Split:
    rng = np.random.default_rng(1000 + seed)
    past, future = np.flatnonzero(~later), np.flatnonzero(later)
    return Split(
        np.sort(rng.permutation(past)[: int(0.8 * len(past))]),
        np.sort(rng.permutation(future)[: len(future) // 2]),
        seed,
    )


def sampled(dataset: Dataset) -> Dataset:
    """Return at most `MAX_TRAIN_ROWS` and `MAX_TEST_ROWS` rows, drawn at random (as whole groups), in order.

    Raises:
        NotApplicable: Groups are too large.
    """
    train = _draw(dataset, dataset.train, MAX_TRAIN_ROWS, _SEED)
    test = _draw(dataset, dataset.test, MAX_TEST_ROWS, _SEED + 1)
    if len(train) == len(dataset.train) and len(test) == len(dataset.test):
        return dataset
    what = "complete groups" if dataset.group else "each with equal probability"
    sentence = (
        f"Strategies were executed on a sample of {len(train):,} of {len(dataset.train):,} training rows and "
        f"{len(test):,} of {len(dataset.test):,} test rows, drawn at random, {what}; facts refer to all rows."
    )
    return replace(dataset, train=train, test=test, sample=sentence)


def _draw(dataset: Dataset, frame: Frame, most: int, seed: int) -> Frame:
    chosen: Frame = frame.iloc[draw(group_codes(dataset, frame), len(frame), most, seed=seed)]
    return chosen if len(chosen) == len(frame) else chosen.reset_index(drop=True)
