"""`encoding_analysis.json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS, Count, Document, Name, Part
from mleredux_techniques._kit.vocabulary.encoders import Encoding

FeatureType = Literal["numeric", "binary", "nominal", "ordinal", "cyclic", "datetime", "text", "identifier", "constant"]


class EncodedFeature(Part):
    """One feature."""

    column: Name
    type: FeatureType
    cardinality: Count
    """Number of distinct values in the training table, without missing ones."""
    encoding: Encoding


class EncodingAnalysis(Document):
    """The type, cardinality and encoding of each feature."""

    features: list[EncodedFeature] = Field(max_length=MAX_ITEMS)
    """Every feature that is not purely numeric, each once. A feature that is not listed is treated as `numeric` with
    the encoding `none`, or dropped if it contains texts."""

    def _agrees_with_itself(self) -> None:
        for feature in self.features:
            name, distinct = feature.column[:60], feature.cardinality
            wrong = (feature.type == "constant") != (distinct <= 1) or (feature.type == "binary" and distinct != 2)
            if wrong or (feature.type in ("ordinal", "cyclic") and distinct == 2):
                raise ValueError(f"{name!r} has {distinct} values, but its type is {feature.type}")
