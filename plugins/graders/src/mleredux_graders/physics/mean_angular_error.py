"""Mean angle between true and predicted directions."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array, Options, Rows, define, numbers


class AngleOptions(Options):
    """Options of the metric: two target columns, azimuth and zenith, in radians."""


def angular_error(azimuth: Array, zenith: Array, azimuth_pred: Array, zenith_pred: Array) -> Array:
    """Return the angle between two directions given by azimuth and zenith.

    Args:
        azimuth: Radians, any number, shape (rows,), like the other arguments.

    Returns:
        Radians from 0 to pi, shape (rows,).
    """
    around = np.cos(azimuth) * np.cos(azimuth_pred) + np.sin(azimuth) * np.sin(azimuth_pred)
    cosine = np.sin(zenith) * np.sin(zenith_pred) * around + np.cos(zenith) * np.cos(zenith_pred)
    angles: Array = np.abs(np.arccos(np.clip(cosine, -1, 1)))
    return angles


def _read(rows: Rows, options: AngleOptions) -> list[Array]:
    return [numbers(rows.predicted(name), name, booleans=False) for name in rows.targets]


def _score(rows: Rows, y_pred: list[Array], options: AngleOptions) -> float:
    y_true = [numbers(rows.true(name), name) for name in rows.truth]
    return float(angular_error(*y_true, *y_pred).mean())


GRADER = define(
    "mean-angular-error", "Mean angular error", "minimize", _read, _score, options=AngleOptions, perfect=0.0
)
