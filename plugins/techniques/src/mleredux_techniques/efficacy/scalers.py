"""Scalings, carried out on one numeric column without gaps: names and parameters as in scikit-learn.

Formulas are scikit-learn's; the exponent of PowerTransformer is the most likely one of a grid, by quantiles of the
column, which takes a small part of the time.
"""

from __future__ import annotations

from collections.abc import Callable
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

EXPONENTS = np.linspace(-4.0, 6.0, 101)
QUANTILES = 200
NEARLY_SURE = 1e-7
"""Quantiles nearer to 0 or 1 are cut, as in scikit-learn: the normal distribution has no end."""


def scale(scaler: Scaler, train: Array, held_out: Array) -> tuple[Array, Array]:
    """Scale a column by what its training rows say.

    Returns:
        Columns of shape (rows, 1).
    """
    if np.ptp(train) == 0 and not isinstance(scaler, NoScaler):
        return np.zeros((len(train), 1)), np.zeros((len(held_out), 1))
    if isinstance(scaler, QuantileTransformer):
        train, held_out = _ranked(scaler, train, train), _ranked(scaler, train, held_out)
        return train[:, None], held_out[:, None]
    if isinstance(scaler, Log1p):
        low = min(0.0, float(train.min()))
        train, held_out = (np.log1p(np.maximum(values - low, 0.0)) for values in (train, held_out))
    if isinstance(scaler, PowerTransformer):
        train, held_out = _powers(scaler, train, held_out)
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


def _ranked(scaler: QuantileTransformer, train: Array, values: Array) -> Array:
    shares = np.linspace(0, 1, min(scaler.n_quantiles, len(train)))
    marks = np.quantile(train, shares)
    # Where many rows have one value, the middle of their ranks: the mean of both ways of looking a value up.
    ranks = 0.5 * (np.interp(values, marks, shares) - np.interp(-values, -marks[::-1], -shares[::-1]))
    if scaler.output_distribution == "uniform":
        return np.asarray(ranks)
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(ranks, NEARLY_SURE, 1 - NEARLY_SURE)))


def _powers(scaler: PowerTransformer, train: Array, held_out: Array) -> tuple[Array, Array]:
    """I.-K. Yeo and R. A. Johnson, "A new family of power transformations", Biometrika 87 (2000); for positive values
    on request G. E. P. Box and D. R. Cox, "An analysis of transformations", J. R. Stat. Soc. B 26 (1964).
    """
    boxcox = scaler.method == "box-cox" and float(train.min()) > 0
    if boxcox:
        held_out = np.maximum(held_out, float(train.min()))
        logs = np.log(_summary(train))
        best = _likeliest(lambda one: _likelihood(_box_cox(logs, one), (one - 1) * logs))
        return _box_cox(np.log(train), best), _box_cox(np.log(held_out), best)
    few = _summary(train)
    slopes = np.sign(few) * np.log1p(np.abs(few))
    best = _likeliest(lambda one: _likelihood(_yeo_johnson(few, one), (one - 1) * slopes))
    return _yeo_johnson(train, best), _yeo_johnson(held_out, best)


def _likeliest(likelihood: Callable[[float], float]) -> float:
    """The exponent of the largest likelihood; the grid is widened while that lies at its end (tiny units)."""
    grid = EXPONENTS
    for _ in range(5):
        best = int(np.argmax([likelihood(float(exponent)) for exponent in grid]))
        if 0 < best < len(grid) - 1:
            break
        grid = grid * 6
    return float(grid[best])


def _summary(values: Array) -> Array:
    return np.asarray(np.quantile(values, np.linspace(0, 1, min(QUANTILES, len(values)))))


def _likelihood(transformed: Array, slopes: Array) -> float:
    """Log-likelihood per value of a normal distribution, up to a constant."""
    spread = float(transformed.var()) if np.abs(transformed).max() < 1e150 else np.inf
    return -0.5 * float(np.log(spread)) + float(slopes.mean()) if 1e-300 < spread < 1e300 else -np.inf


def _box_cox(logs: Array, exponent: float) -> Array:
    return np.asarray(logs if abs(exponent) < 1e-9 else np.expm1(exponent * logs) / exponent)


def _yeo_johnson(values: Array, exponent: float) -> Array:
    logs = np.log1p(np.abs(values))
    above, below = _box_cox(logs, exponent), _box_cox(logs, 2 - exponent)
    return np.where(values >= 0, above, -below)
