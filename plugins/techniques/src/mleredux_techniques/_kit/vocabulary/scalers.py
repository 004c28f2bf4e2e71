"""Scalers of numeric columns: a closed vocabulary for documents."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mleredux_techniques._kit.vocabulary.document import Part


class NoScaler(Part):
    """Keep the column unchanged."""

    name: Literal["none"]


class LinearScaler(Part):
    """The scaler of this name in sklearn.preprocessing; MinMaxScaler to [0, 1]."""

    name: Literal["StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"]


class PowerTransformer(Part):
    """sklearn.preprocessing.PowerTransformer, standardized; box-cox falls back to yeo-johnson for values below 0."""

    name: Literal["PowerTransformer"]
    method: Literal["yeo-johnson", "box-cox"] = "yeo-johnson"


class QuantileTransformer(Part):
    """sklearn.preprocessing.QuantileTransformer."""

    name: Literal["QuantileTransformer"]
    output_distribution: Literal["uniform", "normal"] = "uniform"
    n_quantiles: Annotated[int, Field(ge=10, le=1_000)] = 1_000


class Log1p(Part):
    """numpy.log1p of the value, minus the training minimum if that is negative, then standardized."""

    name: Literal["log1p"]


Scaler = Annotated[
    NoScaler | LinearScaler | PowerTransformer | QuantileTransformer | Log1p, Field(discriminator="name")
]
"""The scaling of numbers: a scaler with its parameters, chosen by `name`."""
