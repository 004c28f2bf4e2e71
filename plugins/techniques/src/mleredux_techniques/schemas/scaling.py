"""`scaling_analysis.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from mleredux_techniques.schemas.base import MAX_ITEMS, Document, Name, Part, Text, once

ModelFamily = Literal[
    "linear_model",
    "k_nearest_neighbors",
    "svm",
    "neural_network",
    "decision_tree",
    "random_forest",
    "gradient_boosted_trees",
]


class NoScaler(Part):
    """The column stays as it is."""

    name: Literal["none"]


class StandardScaler(Part):
    """sklearn.preprocessing.StandardScaler."""

    name: Literal["StandardScaler"]


class MinMaxScaler(Part):
    """sklearn.preprocessing.MinMaxScaler to [0, 1]."""

    name: Literal["MinMaxScaler"]


class MaxAbsScaler(Part):
    """sklearn.preprocessing.MaxAbsScaler."""

    name: Literal["MaxAbsScaler"]


class RobustScaler(Part):
    """sklearn.preprocessing.RobustScaler."""

    name: Literal["RobustScaler"]


class PowerTransformer(Part):
    """sklearn.preprocessing.PowerTransformer, standardised; box-cox falls back to yeo-johnson for values below 0."""

    name: Literal["PowerTransformer"]
    method: Literal["yeo-johnson", "box-cox"] = "yeo-johnson"


class QuantileTransformer(Part):
    """sklearn.preprocessing.QuantileTransformer."""

    name: Literal["QuantileTransformer"]
    output_distribution: Literal["uniform", "normal"] = "uniform"
    n_quantiles: Annotated[int, Field(ge=10, le=1_000)] = 1_000


class Log1p(Part):
    """numpy.log1p of the value less the training minimum where that is negative, then standardised."""

    name: Literal["log1p"]


Scaler = Annotated[
    NoScaler
    | StandardScaler
    | MinMaxScaler
    | MaxAbsScaler
    | RobustScaler
    | PowerTransformer
    | QuantileTransformer
    | Log1p,
    Field(discriminator="name"),
]


class ScaledFeature(Part):
    """One numeric feature."""

    column: Name
    mean: float = Field(description="Of the training table, missing values left out.")
    std: Annotated[float, Field(ge=0)] = Field(description="Standard deviation likewise.")
    skewed: bool = Field(description="Whether its skewness is above 1 or below -1.")
    outliers: bool = Field(
        description="Whether more than 5 % of its values lie more than 1.5 interquartile ranges outside the quartiles."
    )
    scaler: Scaler


class ScalingAnalysis(Document):
    """How numeric features are scaled, and where none is needed."""

    features: list[ScaledFeature] = Field(
        max_length=MAX_ITEMS,
        description="Every numeric feature (true and false and constant ones left out), each once; one that is not "
        "listed stays as it is.",
    )
    spread: Annotated[float, Field(ge=1)] = Field(
        description="The largest standard deviation of these features divided by the smallest."
    )
    not_needed_for: list[ModelFamily] = Field(
        max_length=7, description="Families of models whose predictions don't depend on the scale of the features."
    )
    rationale: Text = ""

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> ScalingAnalysis:
        once((feature.column for feature in self.features), "features")
        once(self.not_needed_for, "not_needed_for")
        deviations = [feature.std for feature in self.features]
        if deviations and min(deviations) > 0:
            spread = max(deviations) / min(deviations)
            if abs(self.spread - spread) > 0.1 * spread:
                raise ValueError("spread contradicts the standard deviations of features")
        return self
