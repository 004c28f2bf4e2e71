"""Execution of encodings and scalers: from columns of training and held-out rows to matrices of both.

Everything is fitted on the training rows. Imported when a recommendation is executed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn import model_selection, preprocessing
from sklearn.feature_extraction.text import TfidfVectorizer

from mleredux_techniques._kit.data.dataset import Array, Series
from mleredux_techniques._kit.vocabulary import encoders, scalers

Pair = tuple[Array, Array]
"""The matrices of the training and of the held-out rows, of shape (rows, columns)."""
_TIME = r"^(\d{1,2}):(\d{2})"


def scaled(scaler: scalers.Scaler | None, ours: Array, theirs: Array) -> Pair:
    """Scale imputed, non-constant columns; with `None`, they become 0.

    Held-out values below the training minimum are clipped to it where a logarithm requires it.
    """
    if scaler is None:
        return np.zeros_like(ours), np.zeros_like(theirs)
    if isinstance(scaler, scalers.NoScaler):
        return ours, theirs
    low = ours.min(axis=0)
    if isinstance(scaler, scalers.Log1p):
        low = np.minimum(low, 0.0)
        logs = (np.log1p(np.maximum(values - low, 0.0)) for values in (ours, theirs))
        return _fitted(preprocessing.StandardScaler(), *logs)
    if isinstance(scaler, scalers.PowerTransformer) and scaler.method == "box-cox":
        theirs = np.maximum(theirs, low)
    return _fitted(getattr(preprocessing, scaler.name)(**scaler.model_dump(exclude={"name"})), ours, theirs)


def encoded(
    encoding: encoders.Encoding, ours: Series, theirs: Series, target: Array, *, classes: bool, seed: int, most: int
) -> Pair:
    """Encode a column of texts without missing values. Numeric results are standardized; one-hot and word columns are
    not.

    Args:
        target: Class codes or numbers of the training rows.
        classes: Whether `target` contains class codes.
        seed: Seed of the folds in TargetEncoder.
        most: Maximum number of columns.
    """
    tables: Any = [values.to_numpy(dtype=object)[:, None] for values in (ours, theirs)]
    tool: Any = None
    if isinstance(encoding, encoders.OneHotEncoder):
        options = {"min_frequency": encoding.min_frequency, "handle_unknown": "ignore", "sparse_output": False}
        shared = min(encoding.max_categories or most, most)
        return _fitted(preprocessing.OneHotEncoder(max_categories=shared, **options), *tables)
    if isinstance(encoding, encoders.TfidfVectorizer):
        return _words(encoding, ours, theirs, most)
    if isinstance(encoding, encoders.TargetEncoder):
        kinds = np.unique(target, return_counts=True)[1] if classes else np.array([len(target)])
        folds = min(encoding.cv, int(kinds.max()))
        if folds < 2:
            return np.zeros((len(ours), 0)), np.zeros((len(theirs), 0))
        family = model_selection.StratifiedKFold if classes else model_selection.KFold
        tool = preprocessing.TargetEncoder(
            target_type="continuous" if not classes else "binary" if len(kinds) <= 2 else "multiclass",
            smooth=encoding.smooth,
            cv=family(folds, shuffle=True, random_state=seed),
        )
    elif isinstance(encoding, encoders.OrdinalEncoder):
        order = [list(dict.fromkeys(encoding.categories))] if encoding.categories else "auto"
        tool = preprocessing.OrdinalEncoder(categories=order, handle_unknown="use_encoded_value", unknown_value=-1)
    elif isinstance(encoding, encoders.CountEncoder):
        tables = [values.map(ours.value_counts()).fillna(0.0).to_numpy(float)[:, None] for values in (ours, theirs)]
    elif isinstance(encoding, encoders.CyclicEncoder):
        tables = _cycles(encoding, ours, theirs)
    else:
        tables = _dates(ours), _dates(theirs)
    first, last = _fitted(tool, tables[0], tables[1], target) if tool else tables
    return _fitted(preprocessing.StandardScaler(), first, last)


def _fitted(tool: Any, ours: Any, theirs: Any, target: Array | None = None) -> Pair:
    return np.asarray(tool.fit_transform(ours, target)), np.asarray(tool.transform(theirs))


def _words(encoding: encoders.TfidfVectorizer, ours: Series, theirs: Series, most: int) -> Pair:
    ngrams, most = (1, 1) if encoding.analyzer == "word" else (2, 4), min(encoding.max_features, most)
    tool = TfidfVectorizer(max_features=most, analyzer=encoding.analyzer, ngram_range=ngrams)
    try:
        return tool.fit_transform(ours).toarray(), tool.transform(theirs).toarray()
    except ValueError:  # no words
        return np.zeros((len(ours), 0)), np.zeros((len(theirs), 0))


def _cycles(encoding: encoders.CyclicEncoder, ours: Series, theirs: Series) -> Pair:
    """Return sine and cosine of the position of numbers, times of day (`23:30`) or categories in a period; 0 if
    unknown.
    """
    numbers, timed, names = _numbers(ours), bool(ours.str.match(_TIME).all()), list[str]()
    if encoding.categories is not None or numbers.isna().mean() > 0.5:
        names = list(dict.fromkeys(encoding.categories or sorted(ours.unique())))
    usual = len(names) or (24 if timed else float(np.ptp(numbers.dropna())) + 1)
    order = {name: place for place, name in enumerate(names)}
    placed = ((texts.map(order) if order else _numbers(texts)).to_numpy(dtype=float) for texts in (ours, theirs))
    angles = [2 * np.pi * places / (encoding.period or usual) for places in placed]
    first, last = (np.nan_to_num(np.column_stack([np.sin(angle), np.cos(angle)])) for angle in angles)
    return first, last


def _numbers(texts: Series) -> Series:
    """Return times of day in hours, and other texts as numbers; NaN if a text is neither."""
    parts = texts.str.extract(_TIME).astype(float)
    return (parts[0] + parts[1] / 60).fillna(pd.to_numeric(texts, errors="coerce"))


def _dates(texts: Series) -> Array:
    """Return year, month, day, hour, weekday and seconds since 1970, as skrub.DatetimeEncoder; NaN for other texts.

    Its own parser accepts one format per column; these texts may have any.
    """
    numbers = pd.to_numeric(texts, errors="coerce")
    compact = texts.str.len().isin([8, 14]).mean() > 0.5
    if numbers.notna().mean() > 0.5 and 1e7 < numbers.abs().median() < 1e11 and not compact:
        moments = pd.to_datetime(numbers, unit="s", errors="coerce", utc=True)
    else:
        moments = pd.to_datetime(texts, errors="coerce", utc=True, format="mixed")
    parts = moments.dt
    seconds = (moments - pd.Timestamp("1970-01-01", tz="UTC")).dt.total_seconds()
    columns: list[Any] = [parts.year, parts.month, parts.day, parts.hour, parts.day_of_week, seconds]
    return np.column_stack([np.asarray(column, dtype=float) for column in columns])
