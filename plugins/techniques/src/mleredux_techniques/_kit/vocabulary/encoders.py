"""Encodings of texts as numbers: a closed vocabulary for documents, executed with scikit-learn."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from mleredux_techniques._kit.data.dataset import Array
from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS, Part

MAX_COLUMNS = 300
"""Maximum number of columns per feature: rarer categories share one column, rarer words are omitted."""


class NoEncoding(Part):
    """Keep the column unchanged, as a number (true and false become 1 and 0; texts that are amounts are parsed)."""

    name: Literal["none"]


class DropFeature(Part):
    """Drop the column."""

    name: Literal["drop"]
    """The name of the method, always `drop`."""


class OneHotEncoder(Part):
    """sklearn.preprocessing.OneHotEncoder; unknown categories are all zeros."""

    name: Literal["OneHotEncoder"]
    min_frequency: Annotated[int, Field(ge=1)] | None = None
    max_categories: Annotated[int, Field(ge=2, le=500)] | None = None


class OrdinalEncoder(Part):
    """sklearn.preprocessing.OrdinalEncoder; unknown categories are -1."""

    name: Literal["OrdinalEncoder"]
    categories: list[Annotated[str, Field(max_length=500)]] | None = Field(default=None, max_length=MAX_ITEMS)
    """In order, lowest first; alphabetical if null."""


class TargetEncoder(Part):
    """sklearn.preprocessing.TargetEncoder: target means, cross-fitted."""

    name: Literal["TargetEncoder"]
    smooth: Literal["auto"] | Annotated[float, Field(ge=0)] = "auto"
    cv: Annotated[int, Field(ge=2, le=20)] = 5


class CountEncoder(Part):
    """category_encoders.CountEncoder: the number of occurrences of the category in the training table."""

    name: Literal["CountEncoder"]


class CyclicEncoder(Part):
    """Sine and cosine of the position in a period."""

    name: Literal["CyclicEncoder"]
    period: Annotated[float, Field(gt=0)] | None = None
    """In units of the column; null: of numbers, the largest minus the smallest plus 1; of times of day, 24 hours; of
    other texts, the number of categories."""
    categories: list[Annotated[str, Field(max_length=500)]] | None = Field(default=None, max_length=MAX_ITEMS)
    """Of texts, in order; alphabetical if null."""


class DatetimeEncoder(Part):
    """skrub.DatetimeEncoder: year, month, day, hour, weekday, and seconds since 1970."""

    name: Literal["DatetimeEncoder"]


class TfidfVectorizer(Part):
    """sklearn.feature_extraction.text.TfidfVectorizer."""

    name: Literal["TfidfVectorizer"]
    max_features: Annotated[int, Field(ge=1, le=5_000)] = 1_000
    analyzer: Literal["word", "char", "char_wb"] = "word"


Encoding = Annotated[
    NoEncoding
    | DropFeature
    | OneHotEncoder
    | OrdinalEncoder
    | TargetEncoder
    | CountEncoder
    | CyclicEncoder
    | DatetimeEncoder
    | TfidfVectorizer,
    Field(discriminator="name"),
]
"""The encoding of a column: an encoder with its parameters, chosen by `name`."""


def encoder_of(encoding: Encoding, target: Array, *, classes: bool, seed: int, most: int = MAX_COLUMNS) -> Any:
    """Return the transformer that executes an encoding, for a text column without missing values.

    Numeric results are standardized; one-hot and word columns are not.

    Args:
        target: Class codes or numbers of the training rows.
        classes: Whether `target` contains class codes.
        seed: Seed of the folds in TargetEncoder.
        most: Maximum number of columns per feature.
    """
    from sklearn import model_selection, preprocessing

    from mleredux_techniques._kit.vocabulary import transformers

    if isinstance(encoding, OneHotEncoder):
        return preprocessing.OneHotEncoder(
            min_frequency=encoding.min_frequency,
            max_categories=min(encoding.max_categories or most, most),
            handle_unknown="ignore",
            sparse_output=False,
        )
    if isinstance(encoding, TfidfVectorizer):
        ngrams = (1, 1) if encoding.analyzer == "word" else (2, 4)
        most = min(encoding.max_features, most)
        return transformers.Words(max_features=most, analyzer=encoding.analyzer, ngram_range=ngrams)
    tool: Any
    if isinstance(encoding, OrdinalEncoder):
        order = [list(dict.fromkeys(encoding.categories))] if encoding.categories else "auto"
        tool = preprocessing.OrdinalEncoder(categories=order, handle_unknown="use_encoded_value", unknown_value=-1)
    elif isinstance(encoding, TargetEncoder):
        kinds = np.unique(target, return_counts=True)[1] if classes else np.array([len(target)])
        folds = min(encoding.cv, int(kinds.max()))
        if folds < 2:
            return preprocessing.FunctionTransformer(lambda texts: np.zeros((len(texts), 0)))
        family = model_selection.StratifiedKFold if classes else model_selection.KFold
        tool = preprocessing.TargetEncoder(
            target_type="continuous" if not classes else "binary" if len(kinds) <= 2 else "multiclass",
            smooth=encoding.smooth,
            cv=family(folds, shuffle=True, random_state=seed),
        )
    elif isinstance(encoding, CountEncoder):
        tool = transformers.Counts()
    elif isinstance(encoding, CyclicEncoder):
        tool = transformers.Cycles(encoding.period, encoding.categories)
    else:
        tool = preprocessing.FunctionTransformer(transformers.dates)
    return transformers.standardized(tool)
