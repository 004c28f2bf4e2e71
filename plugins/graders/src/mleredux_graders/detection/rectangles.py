"""Overlap of rotated rectangles."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array

from mleredux_graders.detection.libraries import imported


def corners(centres: Array, lengths: Array, widths: Array, yaws: Array) -> Array:
    """Return the corners of rectangles, counter-clockwise.

    Args:
        centers: x and y, shape (boxes, 2).
        lengths: Extents along (cos yaw, sin yaw), shape (boxes,).
        widths: Extents across it, shape (boxes,).
        yaws: Radians, shape (boxes,).

    Returns:
        Shape (boxes, 4, 2).
    """
    along = np.stack([np.cos(yaws), np.sin(yaws)], axis=1) * lengths[:, None] / 2
    across = np.stack([-np.sin(yaws), np.cos(yaws)], axis=1) * widths[:, None] / 2
    return np.stack([along + across, across - along, -along - across, along - across], axis=1) + centres[:, None, :]


def overlap_areas(a: Array, b: Array) -> Array:
    """Return the intersection area of each pair of rectangles.

    Args:
        a: Corners, counter-clockwise, shape (pairs, 4, 2).
        b: The same.

    Returns:
        Shape (pairs,).
    """
    shapely = imported("shapely")
    origin = a.mean(axis=1, keepdims=True)  # far from the origin, areas would lose precision
    areas: Array = shapely.area(shapely.intersection(shapely.polygons(a - origin), shapely.polygons(b - origin)))
    return areas
