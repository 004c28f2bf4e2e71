"""Angles between positions: percentiles of distances on Earth, and mean angle of directions."""

from __future__ import annotations

import numpy as np
from mleredux.plugin.grader import Score
from mleredux_tables import Array, Options, Rows, numbers

from mleredux_graders.directions import distance

EARTH_RADIUS = 6_371_000.0
"""Meters."""


class HaversineOptions(Options):
    """Options of the metric: two target columns, latitude and longitude, in degrees."""

    group: str
    """Column of the answers with the track of each row."""
    percentiles: tuple[float, ...] = (50.0, 95.0)
    keep_nan: bool = False
    """Whether a missing coordinate makes the score NaN instead of being rejected."""

    def answer_columns(self) -> tuple[str, ...]:
        """Return the columns that the options name."""
        return (*super().answer_columns(), self.group)


def haversine(latitude: Array, longitude: Array, latitude_pred: Array, longitude_pred: Array) -> Array:
    """Return the great-circle distance.

    Args:
        latitude: Degrees, shape (rows,), like the other arguments.

    Returns:
        Meters, shape (rows,).
    """
    true, predicted = np.radians(latitude), np.radians(latitude_pred)
    across = np.sin((predicted - true) / 2) ** 2
    along = np.sin(np.radians(longitude_pred - longitude) / 2) ** 2
    distances: Array = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(across + np.cos(predicted) * np.cos(true) * along))
    return distances


def _read_places(rows: Rows, options: HaversineOptions) -> list[Array]:
    return [numbers(rows.predicted(name), name, finite=not options.keep_nan) for name in rows.targets]


def _percentiles(rows: Rows, y_pred: list[Array], options: HaversineOptions) -> Score:
    import pandas as pd

    y_true = [numbers(rows.true(name), name) for name in rows.truth]
    distances = haversine(*y_true, *y_pred)
    groups, names = pd.factorize(rows.true(options.group))
    order = np.argsort(groups, kind="stable")
    parts = np.split(distances[order], np.flatnonzero(np.diff(groups[order])) + 1)
    shares = np.array(options.percentiles) / 100
    scores = [float(np.quantile(part, shares).mean()) for part in parts]
    details = {str(name): score for name, score in zip(names, scores, strict=True)}
    return Score(value=float(np.mean(scores)), details={"groups": details})


HAVERSINE_PERCENTILES = distance(
    "haversine-percentiles",
    "Percentiles of the distance on the globe",
    _read_places,
    _percentiles,
    options=HaversineOptions,
)


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


def _read_directions(rows: Rows, options: AngleOptions) -> list[Array]:
    return [numbers(rows.predicted(name), name, booleans=False) for name in rows.targets]


def _mean_angle(rows: Rows, y_pred: list[Array], options: AngleOptions) -> float:
    y_true = [numbers(rows.true(name), name) for name in rows.truth]
    return float(angular_error(*y_true, *y_pred).mean())


MEAN_ANGULAR_ERROR = distance(
    "mean-angular-error", "Mean angular error", _read_directions, _mean_angle, options=AngleOptions
)
