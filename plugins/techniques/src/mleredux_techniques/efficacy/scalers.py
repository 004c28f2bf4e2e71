"""Scalings, carried out on one numeric column without gaps: names and parameters as in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques.schemas.scaling import (
    Log1p,
    MaxAbsScaler,
    MinMaxScaler,
    NoScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    Scaler,
)

Array = np.ndarray[Any, Any]


def scale(scaler: Scaler, train: Array, held_out: Array, *, seed: int) -> tuple[Array, Array]:
    """Scale a column by what its training rows say.

    Returns:
        Columns of shape (rows, 1).
    """
    if isinstance(scaler, PowerTransformer | QuantileTransformer):
        return _transformed(scaler, train[:, None], held_out[:, None], seed)
    if isinstance(scaler, Log1p):
        low = min(0.0, float(train.min()))
        train, held_out = (np.log1p(np.maximum(values - low, 0.0)) for values in (train, held_out))
    middle, spread = _middle_and_spread(scaler, train)
    return ((train - middle) / spread)[:, None], ((held_out - middle) / spread)[:, None]


def _middle_and_spread(scaler: Scaler, train: Array) -> tuple[float, float]:
    if isinstance(scaler, NoScaler):
        return 0.0, 1.0
    if isinstance(scaler, MinMaxScaler):
        return float(train.min()), float(np.ptp(train)) or 1.0
    if isinstance(scaler, MaxAbsScaler):
        return 0.0, float(np.abs(train).max()) or 1.0
    if isinstance(scaler, RobustScaler):
        low, middle, high = np.quantile(train, [0.25, 0.5, 0.75])
        return float(middle), float(high - low) or 1.0
    return float(train.mean()), float(train.std()) or 1.0


def _transformed(
    scaler: PowerTransformer | QuantileTransformer, train: Array, held_out: Array, seed: int
) -> tuple[Array, Array]:
    from sklearn import preprocessing

    tool: Any
    if isinstance(scaler, QuantileTransformer):
        tool = preprocessing.QuantileTransformer(
            n_quantiles=min(scaler.n_quantiles, len(train)), output_distribution=scaler.output_distribution,
            random_state=seed,
        )  # fmt: skip
    else:
        positive = float(train.min()) > 0
        tool = preprocessing.PowerTransformer(
            method="box-cox" if scaler.method == "box-cox" and positive else "yeo-johnson"
        )
        if tool.method == "box-cox":
            held_out = np.maximum(held_out, float(train.min()))
    if np.ptp(train) == 0:
        return np.zeros_like(train), np.zeros_like(held_out)
    tool.fit(train)
    return np.asarray(tool.transform(train)), np.asarray(tool.transform(held_out))
