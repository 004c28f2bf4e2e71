"""Numbers of other shapes. Claims are whether `it` is skewed, has outliers, and its scaler."""

from __future__ import annotations

from typing import Any

import numpy as np
from known_tables import Array, Known, Rng

from held_tables import held_out, put

PLAIN = (False, False, "StandardScaler")


def _it(rng: Rng, size: int, values: Array, effect: Array, right: Any, wrong: Any, *, metric: str = "roc-auc") -> Known:
    """A table of plain numbers with `it`, of which the target depends by `effect`."""
    x = rng.normal(size=(size, 3))
    level = 1.5 * (effect - effect.mean()) / effect.std() + 0.6 * x[:, 0] + rng.normal(0, 0.5, size)
    y = level.round(3) if metric == "rmse" else (level > np.median(level)).astype(int)
    rows = _table(rng, x, y)
    return Known(put(rows, it=values), held_out(rng, size), right, wrong, metric)


def _table(rng: Rng, x: Array, y: Array) -> Any:
    import pandas as pd

    columns = {"one": 3 + 2 * x[:, 0], "two": 10 * x[:, 1], "three": 0.5 * x[:, 2]}
    return pd.DataFrame({"id": rng.permutation(len(y)), **{k: v.round(4) for k, v in columns.items()}, "y": y})


def incomes(rng: Rng) -> Known:
    level = rng.normal(size=900)
    return _it(rng, 900, np.exp(10 + 1.6 * level).round(), level, (True, True, "log1p"), PLAIN)


def concentrations(rng: Rng) -> Known:
    """Below 1 and over four powers of ten: log1p does nothing."""
    level = rng.normal(size=900)
    right = (True, True, "QuantileTransformer")
    return _it(rng, 900, np.float64(1e-5) * np.exp(1.8 * level), level, right, PLAIN, metric="rmse")


def far_readings(rng: Rng) -> Known:
    """One in twelve is an error of the instrument."""
    level = rng.normal(size=1000)
    values = np.where(rng.random(1000) < 0.085, rng.choice([-999.0, 9999.0], 1000), 50 + 4 * level)
    return _it(rng, 1000, values.round(2), level, (False, True, "QuantileTransformer"), (False, False, "MinMaxScaler"))


def unscaled_unit(rng: Rng) -> Known:
    """In a large unit, it drowns the others for neighbours."""
    size = 900
    noise = rng.normal(size=size)
    known = _it(rng, size, (noise * 4e5).round(), rng.normal(size=size), PLAIN, (False, False, "none"))
    level = known.rows["one"] / 2 + known.rows["three"] * 2 + rng.normal(0, 0.4, size)
    known.rows["y"] = (level > level.median()).astype(int)
    return known


def counts_of_visits(rng: Rng) -> Known:
    level = rng.normal(size=1000)
    return _it(rng, 1000, rng.poisson(np.exp(1.5 + 1.3 * level)), level, (True, True, "log1p"), PLAIN)


def mirrored(rng: Rng) -> Known:
    level = rng.normal(size=900)
    return _it(rng, 900, (1000 - np.exp(2 + 1.2 * level)).round(2), level, (True, True, "QuantileTransformer"), PLAIN)


def two_humps(rng: Rng) -> Known:
    """Two groups: neither skewed nor far."""
    side = rng.choice([-1, 1], 800)
    values = 20 + 6 * side + rng.normal(0, 1, 800)
    return _it(rng, 800, values.round(3), values, PLAIN, (True, True, "log1p"))


def squared_bell(rng: Rng) -> Known:
    level = rng.normal(size=900)
    return _it(
        rng, 900, (np.abs(level) ** 4).round(4), np.abs(level), (True, True, "PowerTransformer"), PLAIN, metric="rmse"
    )


def heavy_tails(rng: Rng) -> Known:
    level = rng.normal(size=900)
    values = np.sign(level) * np.expm1(1.9 * np.abs(level))
    return _it(rng, 900, values.round(3), level, (False, True, "QuantileTransformer"), PLAIN)


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(incomes, concentrations, far_readings, unscaled_unit, counts_of_visits, mirrored, two_humps, squared_bell),
        heavy_tails,
    )
}
