"""`encoding_analysis.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from mleredux_techniques.schemas.base import MAX_ITEMS, Count, Document, Name, Part, Text, once

FeatureType = Literal["numeric", "binary", "nominal", "ordinal", "datetime", "text", "identifier", "constant"]


class NoEncoding(Part):
    """The column stays as it is: a number (true and false are 1 and 0)."""

    name: Literal["none"]


class DropFeature(Part):
    """Leave the column out."""

    name: Literal["drop"]


class OneHotEncoder(Part):
    """sklearn.preprocessing.OneHotEncoder; unknown categories are all zeros."""

    name: Literal["OneHotEncoder"]
    min_frequency: Annotated[int, Field(ge=1)] | None = None
    max_categories: Annotated[int, Field(ge=2, le=500)] | None = None


class OrdinalEncoder(Part):
    """sklearn.preprocessing.OrdinalEncoder; unknown categories are -1."""

    name: Literal["OrdinalEncoder"]
    categories: list[Annotated[str, Field(max_length=500)]] | None = Field(
        default=None, max_length=MAX_ITEMS, description="In their order, lowest first; alphabetical where null."
    )


class TargetEncoder(Part):
    """sklearn.preprocessing.TargetEncoder: means of the target, fitted across folds."""

    name: Literal["TargetEncoder"]
    smooth: Literal["auto"] | Annotated[float, Field(ge=0)] = "auto"
    cv: Annotated[int, Field(ge=2, le=20)] = 5


class CountEncoder(Part):
    """category_encoders.CountEncoder: how often the category occurs in the training table."""

    name: Literal["CountEncoder"]


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
    | DatetimeEncoder
    | TfidfVectorizer,
    Field(discriminator="name"),
]


class EncodedFeature(Part):
    """One feature."""

    column: Name
    type: FeatureType
    cardinality: Count = Field(description="Different values in the training table, missing ones not counted.")
    encoding: Encoding


class EncodingAnalysis(Document):
    """Types of the features, and how each becomes numbers."""

    features: list[EncodedFeature] = Field(
        max_length=MAX_ITEMS,
        description="Every feature that is not plainly numeric, each once; a feature that is not listed is taken for "
        "`numeric` with the encoding `none`, or left out where it holds texts.",
    )
    rationale: Text = ""

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> EncodingAnalysis:
        once((feature.column for feature in self.features), "features")
        for feature in self.features:
            name, distinct = feature.column[:60], feature.cardinality
            if (feature.type == "constant") != (distinct <= 1):
                raise ValueError(f"{name!r} has {distinct} values, yet its type is {feature.type}")
            if (feature.type == "binary" and distinct != 2) or (feature.type == "ordinal" and distinct == 2):
                raise ValueError(f"{name!r} has {distinct} values, yet its type is {feature.type}")
        return self
