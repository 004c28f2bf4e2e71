"""Encodings of texts as numbers: a closed vocabulary for documents."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

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
