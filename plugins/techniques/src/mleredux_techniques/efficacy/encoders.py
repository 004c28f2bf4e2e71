"""Encodings, carried out on one column of texts without gaps: names and parameters as in scikit-learn and skrub."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques.efficacy.splits import assign_folds
from mleredux_techniques.schemas.encoding import (
    CountEncoder,
    DatetimeEncoder,
    Encoding,
    OneHotEncoder,
    OrdinalEncoder,
    TargetEncoder,
    TfidfVectorizer,
)

Array = np.ndarray[Any, Any]
Block = tuple[Array, Array]

MAX_COLUMNS = 300
"""Columns that one feature becomes at most: rarer categories or words beyond it share one column, or are left out."""


def encode(
    encoding: Encoding,
    train: Array,
    held_out: Array,
    codes: Array,
    classes: bool,
    seed: int,
    most: int = MAX_COLUMNS,
) -> Block:
    """Encode a column by what its training rows say. Columns of numbers are standardised, one-hot columns are not.

    Args:
        train: Texts of the training rows, of shape (rows,).
        held_out: Texts of the held-out rows.
        codes: Class codes or numbers of the training rows' target.
        classes: Whether these are classes.
        most: Columns at most.

    Returns:
        Shapes (rows, columns).
    """
    if isinstance(encoding, OneHotEncoder):
        return _one_hot(encoding, train, held_out, most)
    if isinstance(encoding, TfidfVectorizer):
        return _tfidf(encoding, train, held_out, most)
    if isinstance(encoding, OrdinalEncoder):
        order = list(dict.fromkeys(encoding.categories)) if encoding.categories else sorted(set(train))
        rank = {category: place for place, category in enumerate(order)}
        pair = tuple(
            np.array([rank.get(text, -1) for text in part], dtype=float)[:, None] for part in (train, held_out)
        )
    elif isinstance(encoding, CountEncoder):
        names, counts = np.unique(train.astype(str), return_counts=True)
        often = dict(zip(names.tolist(), counts.tolist(), strict=True))
        pair = tuple(
            np.array([often.get(text, 0) for text in part], dtype=float)[:, None] for part in (train, held_out)
        )
    elif isinstance(encoding, DatetimeEncoder):
        pair = _dates(train), _dates(held_out)
    elif isinstance(encoding, TargetEncoder):
        pair = _target_means(encoding, train, held_out, codes, classes, seed)
    else:
        return np.zeros((len(train), 0)), np.zeros((len(held_out), 0))
    return _standardised(*pair)


def _standardised(train: Array, held_out: Array) -> Block:
    known = np.where(np.isnan(train), np.nan, train)
    empty = np.isnan(known).all(axis=0)
    middle, spread = np.zeros(train.shape[1]), np.ones(train.shape[1])
    middle[~empty] = np.nanmean(known[:, ~empty], axis=0)
    spread[~empty] = np.nanstd(known[:, ~empty], axis=0)
    spread[spread < 1e-12] = 1.0
    return np.nan_to_num((train - middle) / spread), np.nan_to_num((held_out - middle) / spread)


def _one_hot(encoding: OneHotEncoder, train: Array, held_out: Array, limit: int) -> Block:
    names, counts = np.unique(train.astype(str), return_counts=True)
    order = np.lexsort((names, -counts))  # frequent ones first
    kept = [names[place] for place in order if counts[place] >= (encoding.min_frequency or 1)]
    most = min(encoding.max_categories or limit, limit)
    rest = len(kept) < len(names) or len(kept) > most
    kept = kept[: most - 1] if len(kept) > most else kept
    place_of = {str(name): place for place, name in enumerate(kept)}
    infrequent = {str(name) for name in names} - set(place_of) if rest else set()

    def columns(texts: Array) -> Array:
        matrix = np.zeros((len(texts), len(kept) + bool(rest)))
        places = [place_of.get(text, len(kept) if text in infrequent else -1) for text in texts]
        rows = np.flatnonzero(np.array(places) >= 0)
        matrix[rows, np.array(places)[rows]] = 1.0
        return matrix

    return columns(train), columns(held_out)


def _tfidf(encoding: TfidfVectorizer, train: Array, held_out: Array, limit: int) -> Block:
    from sklearn.feature_extraction import text

    ngrams = (1, 1) if encoding.analyzer == "word" else (2, 4)
    tool = text.TfidfVectorizer(
        max_features=min(encoding.max_features, limit), analyzer=encoding.analyzer, ngram_range=ngrams
    )
    try:
        first = tool.fit_transform(train).toarray()
    except ValueError:  # no words in it
        return np.zeros((len(train), 0)), np.zeros((len(held_out), 0))
    return first, tool.transform(held_out).toarray()


def _dates(texts: Array) -> Array:
    import pandas as pd

    plain = pd.Series(texts, dtype=object)
    numbers = pd.to_numeric(plain, errors="coerce")
    if (
        numbers.notna().mean() > 0.5
        and numbers.abs().median() < 1e11
        and numbers.abs().median() > 1e7
        and not (plain.str.len().isin([8, 14]).mean() > 0.5)
    ):
        moments = pd.to_datetime(numbers, unit="s", errors="coerce", utc=True)
    else:
        moments = pd.to_datetime(plain, errors="coerce", utc=True, format="mixed")
    parts = moments.dt
    seconds = (moments - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    columns: list[Any] = [parts.year, parts.month, parts.day, parts.hour, parts.day_of_week, seconds]
    return np.column_stack([np.asarray(column, dtype=float) for column in columns])


def _target_means(
    encoding: TargetEncoder, train: Array, held_out: Array, codes: Array, classes: bool, seed: int
) -> tuple[Array, Array]:
    """Training rows get means of the other folds, held-out rows those of all training rows.

    Smoothing is scikit-learn's: a number of rows with the overall mean, or `auto`, the empirical Bayes estimate of
    D. Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes", SIGKDD Explor. 3 (2001).
    """
    names, places = np.unique(train.astype(str), return_inverse=True)
    lookup = {name: place for place, name in enumerate(names.tolist())}
    others = np.array([lookup.get(text, len(names)) for text in held_out])
    y = np.eye(int(codes.max()) + 1)[codes][:, np.unique(codes)[1:]] if classes else codes[:, None].astype(float)
    if y.shape[1] == 0:
        return np.zeros((len(train), 1)), np.zeros((len(held_out), 1))
    if y.shape[1] > 1:  # more than two classes: one column each
        y = np.column_stack([(codes == np.unique(codes)[0]).astype(float), y])
    folds = assign_folds(codes if classes else np.zeros(len(codes), dtype=int), None, encoding.cv, seed=seed)
    first = np.zeros(y.shape)
    for fold in np.unique(folds):
        held = folds == fold
        first[held] = _means(encoding.smooth, places[~held], y[~held], len(names))[places[held]]
    return first, _means(encoding.smooth, places, y, len(names))[others]


def _means(smooth: float | str, places: Array, y: Array, count: int) -> Array:
    """Smoothed means of `y` for each category, and last the overall mean, for unknown ones."""
    rows = np.bincount(places, minlength=count)[:, None].astype(float)
    overall, spread = y.mean(axis=0), y.var(axis=0)
    sums = np.column_stack([np.bincount(places, weights=column, minlength=count) for column in y.T])
    if isinstance(smooth, str):
        squares = np.column_stack([np.bincount(places, weights=column**2, minlength=count) for column in y.T])
        means = sums / np.maximum(rows, 1)
        inner = np.maximum(squares / np.maximum(rows, 1) - means**2, 0.0)
        trust = rows * spread / np.maximum(rows * spread + inner, 1e-300)
        found = trust * means + (1 - trust) * overall
    else:
        found = (sums + smooth * overall) / np.maximum(rows + smooth, 1e-300)
    found[rows[:, 0] == 0] = overall
    return np.vstack([found, overall])
