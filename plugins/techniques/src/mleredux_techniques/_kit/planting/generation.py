"""New rows that resemble those of a dataset: planted data contains no published row.

For each class (or fifth of a numeric target), numbers are drawn from a Gaussian copula with that class's quantiles (R.
B. Nelsen, "An Introduction to Copulas", 2006); prose is spliced from two texts; other columns are taken from one row of
the class. A share of the rows gets the features of another class, so that something is left to learn from the planted
columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from mleredux.errors import NotApplicable

from mleredux_techniques._kit.data.columns import is_free_text
from mleredux_techniques._kit.data.dataset import Array, Dataset, Frame, Series

TRAIN_ROWS, TEST_ROWS = 1_000, 450
MAX_FEATURES = 16
LEFT_OUT = 0.04
"""Share of words that a copy of a text omits."""
CONFUSED = 0.45
"""Share of rows whose features are drawn from a random class or target value."""
_BINS = 5
_SHRINKAGE = 0.1


def generated(
    dataset: Dataset, rng: np.random.Generator, *, rows: int = TRAIN_ROWS + TEST_ROWS, most: int = MAX_FEATURES
) -> Dataset:
    """Return a dataset of new rows, generated from the training rows alone and split at random.

    Args:
        rng: Source of all randomness.
        rows: The total number of rows; `TEST_ROWS` / (`TRAIN_ROWS` + `TEST_ROWS`) of them become the test set.
        most: Maximum number of features.

    Raises:
        NotApplicable: One of several targets is not a number, or there are too few rows.
    """
    import pandas as pd

    donors = dataset.train
    others = [name for name in dataset.targets if name != dataset.target]
    if len(donors) < 30 or any(donors[name].dtype.kind not in "if" for name in others):
        raise NotApplicable(f"Nothing can be planted in {dataset.task}: it has too few rows, or several text targets.")
    features = [str(name) for name in rng.permutation(dataset.features)[:most]]
    kinds = {name: kind for name, kind in dataset.kinds.items() if name in features}
    target, classes, bins = _targets(dataset, rows, rng)
    numbers = [*(name for name in features if kinds[name] == "number"), *others]
    prose = [name for name in features if kinds[name] == "text" and is_free_text(donors[name])]
    parts: list[Frame] = []
    for label in np.unique(classes):
        members = np.flatnonzero(bins == label)
        wanted = np.flatnonzero(classes == label)
        chosen = donors.iloc[members[rng.integers(0, len(members), len(wanted))]][[*features, *others]]
        part = chosen.set_axis(wanted)
        if numbers:
            part[numbers] = _copula(donors.iloc[members][numbers], len(wanted), rng)
        for name in prose:
            part[name] = _spliced(donors.iloc[members][name], len(wanted), rng)
        parts.append(part)
    frame = pd.concat(parts).sort_index()
    frame[dataset.target] = target
    cut = round(rows * TRAIN_ROWS / (TRAIN_ROWS + TEST_ROWS))
    frames = [part.reset_index(drop=True) for part in (frame.iloc[:cut], frame.iloc[cut:])]
    return replace(
        dataset, train=frames[0], test=frames[1], ids=(), features=tuple(features), kinds=kinds, group=None, time=None,
        train_rows=cut, test_rows=rows - cut, sample="", thumbnail=(),
    )  # fmt: skip


def _targets(dataset: Dataset, rows: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return new targets, the bin from which each row's features are drawn, and the bin of each training row."""
    known = dataset.train[dataset.target].to_numpy()
    if dataset.problem == "regression":
        edges = np.quantile(known.astype(float), np.linspace(0, 1, _BINS + 1)[1:-1])
        bins = np.searchsorted(edges, known.astype(float))
        place = rng.random(rows)
        target = np.quantile(known.astype(float), place)
        if (known % 1 == 0).all():
            target = np.round(target)
        source = np.where(rng.random(rows) < CONFUSED, rng.random(rows), place)
        levels_seen = np.unique(bins)
        return target, levels_seen[np.minimum((source * len(levels_seen)).astype(int), len(levels_seen) - 1)], bins
    names, bins = np.unique(known.astype(str), return_inverse=True)
    codes = rng.choice(len(names), rows, p=np.bincount(bins) / len(bins))
    firsts = np.arange(min(rows, 20 * len(names))) % len(names)  # every class keeps some rows
    codes[: len(firsts)] = firsts
    codes = rng.permutation(codes)
    confused = np.where(rng.random(rows) < CONFUSED, rng.integers(0, len(names), rows), codes)
    return names.astype(object)[codes], confused, bins


def _copula(values: Any, count: int, rng: np.random.Generator) -> Array:
    """Draw numeric rows with the quantiles and rank correlations of the given rows, without missing values."""
    from scipy.special import ndtr, ndtri
    from scipy.stats import rankdata

    table = values.to_numpy(dtype=float)
    normal = np.zeros_like(table)
    for place, column in enumerate(table.T):
        known = ~np.isnan(column)
        normal[known, place] = ndtri(rankdata(column[known]) / (known.sum() + 1)) if known.any() else 0.0
    spread = normal.std(axis=0)
    related = np.nan_to_num((normal / np.where(spread > 0, spread, 1)).T @ (normal / np.where(spread > 0, spread, 1)))
    related = (1 - _SHRINKAGE) * related / max(len(table), 1)
    np.fill_diagonal(related, 1.0)
    vectors, sizes, _ = np.linalg.svd(related)
    drawn = rng.standard_normal((count, table.shape[1])) @ (vectors * np.sqrt(sizes)).T
    columns = np.zeros_like(drawn)
    for place, column in enumerate(table.T):
        known = column[~np.isnan(column)]
        shares = ndtr(drawn[:, place] / max(drawn[:, place].std(), 1e-9))
        whole = len(known) > 0 and bool((known % 1 == 0).all())
        quantiles: Array = np.quantile(known, shares) if len(known) else np.zeros(count)
        columns[:, place] = np.round(quantiles) if whole else np.round(quantiles, _decimals(known))
    return np.asarray(columns)


def _spliced(texts: Series, count: int, rng: np.random.Generator) -> list[str]:
    """Splice texts from the beginning of one given text and the end of another; no result equals a given text."""
    words = [str(text).split() for text in texts.dropna()] or [[]]
    originals = {tuple(text) for text in words}
    texts_made = []
    for first, second in rng.integers(0, len(words), (count, 2)):
        parts = words[first][: (len(words[first]) + 1) // 2], words[second][len(words[second]) // 2 :]
        joined = [*parts[0], *parts[1]]
        texts_made.append(" ".join(joined if tuple(joined) not in originals else [*parts[1], *parts[0]]))
    return texts_made


def reworded(dataset: Dataset, frame: Frame, rng: np.random.Generator) -> Frame:
    """Return rows whose prose omits some words, so that texts nearly equal those of other rows."""
    changed = frame.copy()
    for name in dataset.of_kind("text"):
        if is_free_text(dataset.train[name]):
            words = [str(text).split() for text in changed[name].fillna("")]
            changed[name] = [" ".join(word for word in text if rng.random() >= LEFT_OUT) for text in words]
    return changed


def _decimals(values: Array) -> int:
    """Return the number of decimals in the values, at most 6."""
    return next((places for places in range(7) if np.allclose(values, np.round(values, places), atol=1e-9)), 6)
