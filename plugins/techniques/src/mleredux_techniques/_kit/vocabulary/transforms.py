"""Transformers missing from scikit-learn, imported when a recommendation is executed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn import feature_extraction, pipeline, preprocessing
from sklearn.base import BaseEstimator, TransformerMixin

from mleredux_techniques._kit.data.dataset import Array, Series

_TIME = r"^(\d{1,2}):(\d{2})"


def standardized(transformer: Any) -> Any:
    """Return a pipeline of the transformer and a StandardScaler."""
    return pipeline.make_pipeline(transformer, preprocessing.StandardScaler())


class Log1p(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """numpy.log1p of a value, minus the training minimum if that is negative; lower values are 0."""

    def fit(self, x: Any, y: Any = None) -> Log1p:
        self.low_ = np.minimum(np.asarray(x).min(axis=0), 0.0)
        return self

    def transform(self, x: Any) -> Array:
        return np.asarray(np.log1p(np.maximum(np.asarray(x) - self.low_, 0.0)))


class PowerTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """scikit-learn's PowerTransformer, with yeo-johnson if box-cox does not apply to the training values.

    Lower values of other rows are clipped to the training minimum, because their logarithm is undefined.
    """

    def __init__(self, method: str = "yeo-johnson") -> None:
        self.method = method

    def fit(self, x: Any, y: Any = None) -> PowerTransformer:
        x = np.asarray(x)
        self.low_ = x.min(axis=0)
        positive = (self.low_ > 0) & (self.method == "box-cox")
        self.parts_ = [
            (np.flatnonzero(part), preprocessing.PowerTransformer(method).fit(x[:, part]))
            for part, method in ((positive, "box-cox"), (~positive, "yeo-johnson"))
            if part.any()
        ]
        return self

    def transform(self, x: Any) -> Array:
        made = np.array(x, dtype=float)
        for places, tool in self.parts_:
            values = made[:, places]
            made[:, places] = tool.transform(
                np.maximum(values, self.low_[places]) if tool.method == "box-cox" else values
            )
        return made


class Counts(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """category_encoders.CountEncoder: the number of occurrences of a text in the training rows."""

    def fit(self, x: Any, y: Any = None) -> Counts:
        self.counts_ = [values.value_counts() for _name, values in x.items()]
        return self

    def transform(self, x: Any) -> Array:
        columns = [x.iloc[:, place].map(counts).fillna(0.0) for place, counts in enumerate(self.counts_)]
        return np.column_stack([column.to_numpy(dtype=float) for column in columns])


class Cycles(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Sine and cosine of the position of numbers, times of day (`23:30`) or categories in a period; 0 if unknown."""

    def __init__(self, period: float | None = None, categories: list[str] | None = None) -> None:
        self.period, self.categories = period, categories

    def fit(self, x: Any, y: Any = None) -> Cycles:
        texts = x.iloc[:, 0]
        self.order_: list[str] | None = None
        numbers = _hours(texts) if texts.str.match(_TIME).all() else pd.to_numeric(texts, errors="coerce")
        if self.categories is not None or numbers.isna().mean() > 0.5:
            self.order_ = list(dict.fromkeys(self.categories or sorted(texts.unique())))
            self.usual_ = float(len(self.order_))
        else:
            self.usual_ = 24.0 if texts.str.match(_TIME).all() else float(np.ptp(numbers.dropna())) + 1
        return self

    def transform(self, x: Any) -> Array:
        texts = x.iloc[:, 0]
        if self.order_ is not None:
            places = texts.map({name: place for place, name in enumerate(self.order_)})
        else:
            places = _hours(texts).fillna(pd.to_numeric(texts, errors="coerce"))
        angle = 2 * np.pi * places.to_numpy(dtype=float) / (self.period or self.usual_)
        return np.asarray(np.nan_to_num(np.column_stack([np.sin(angle), np.cos(angle)])))


def dates(x: Any) -> Array:
    """Return year, month, day, hour, weekday and seconds since 1970, as skrub.DatetimeEncoder; NaN for other texts.

    Its own parser accepts one format per column; these texts may have any.
    """
    return np.hstack([_dates(values) for _name, values in x.items()])


class Words(feature_extraction.text.TfidfVectorizer):  # type: ignore[misc]
    """scikit-learn's TfidfVectorizer; no columns if the texts have no words."""

    def fit_transform(self, raw_documents: Any, y: Any = None) -> Any:
        try:
            made = super().fit_transform(raw_documents, y)
        except ValueError:
            self.vocabulary_: dict[str, int] = {}
            return np.zeros((len(raw_documents), 0))
        return made

    def transform(self, raw_documents: Any) -> Any:
        return super().transform(raw_documents) if self.vocabulary_ else np.zeros((len(raw_documents), 0))


def _hours(texts: Series) -> Series:
    """Return times of day in hours; NaN if a text is not a time of day."""
    parts = texts.str.extract(_TIME).astype(float)
    return parts[0] + parts[1] / 60


def _dates(texts: Series) -> Array:
    numbers = pd.to_numeric(texts, errors="coerce")
    size = numbers.abs().median()
    compact = texts.str.len().isin([8, 14]).mean() > 0.5
    if numbers.notna().mean() > 0.5 and 1e7 < size < 1e11 and not compact:
        moments = pd.to_datetime(numbers, unit="s", errors="coerce", utc=True)
    else:
        moments = pd.to_datetime(texts, errors="coerce", utc=True, format="mixed")
    parts = moments.dt
    seconds = (moments - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    columns: list[Any] = [parts.year, parts.month, parts.day, parts.hour, parts.day_of_week, seconds]
    return np.column_stack([np.asarray(column, dtype=float) for column in columns])
