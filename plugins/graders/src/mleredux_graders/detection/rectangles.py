"""Overlap of rotated rectangles."""

from __future__ import annotations

import numpy as np
from mleredux.plugin.grader import Array

_NEAR = 1e-12
"""Relative tolerance within which a corner lies on an edge."""


def corners(centres: Array, lengths: Array, widths: Array, yaws: Array) -> Array:
    """Corners of rectangles, counter-clockwise.

    Args:
        centres: x and y, shape (boxes, 2).
        lengths: Along (cos yaw, sin yaw), shape (boxes,).
        widths: Across it, shape (boxes,).
        yaws: Radians, shape (boxes,).

    Returns:
        Shape (boxes, 4, 2).
    """
    along = np.stack([np.cos(yaws), np.sin(yaws)], axis=1) * lengths[:, None] / 2
    across = np.stack([-np.sin(yaws), np.cos(yaws)], axis=1) * widths[:, None] / 2
    return np.stack([along + across, across - along, -along - across, along - across], axis=1) + centres[:, None, :]


def overlap_areas(a: Array, b: Array) -> Array:
    """Area of the intersection of each pair of rectangles.

    The intersection is the convex hull of the corners of either that lie in the other and of the points where edges
    cross; its corners are put in order around their mean, and the shoelace formula gives the area.

    Args:
        a: Corners, counter-clockwise, shape (pairs, 4, 2).
        b: The same.

    Returns:
        Shape (pairs,).
    """
    origin = a.mean(axis=1, keepdims=True)
    a, b = a - origin, b - origin  # far from zero, areas would lose digits
    points = [a, b]
    valid = [_inside(a, b), _inside(b, a)]
    edge_a, edge_b = np.roll(a, -1, axis=1) - a, np.roll(b, -1, axis=1) - b
    gap = b[:, None, :, :] - a[:, :, None, :]
    turn = _cross(edge_a[:, :, None, :], edge_b[:, None, :, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        t = _cross(gap, edge_b[:, None, :, :]) / turn
        u = _cross(gap, edge_a[:, :, None, :]) / turn
    crossing = (turn != 0) & (t >= 0) & (t <= 1) & (u >= 0) & (u <= 1)
    where = a[:, :, None, :] + np.where(crossing, t, 0)[..., None] * edge_a[:, :, None, :]
    points.append(where.reshape(len(a), 16, 2))
    valid.append(crossing.reshape(len(a), 16))
    return _hull_areas(np.concatenate(points, axis=1), np.concatenate(valid, axis=1))


def _cross(a: Array, b: Array) -> Array:
    product: Array = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product


def _inside(points: Array, polygon: Array) -> Array:
    """Which points lie in a convex polygon, shape (pairs, points)."""
    edges = np.roll(polygon, -1, axis=1) - polygon
    sides = _cross(edges[:, None, :, :], points[:, :, None, :] - polygon[:, None, :, :])
    scale = (edges**2).sum(axis=2).max(axis=1)
    inside: Array = (sides >= -_NEAR * scale[:, None, None]).all(axis=2)
    return inside


def _hull_areas(points: Array, valid: Array) -> Array:
    counts = valid.sum(axis=1)
    middle = (points * valid[..., None]).sum(axis=1) / np.maximum(counts, 1)[:, None]
    around = np.where(valid[..., None], points - middle[:, None, :], 0)
    angles = np.where(valid, np.arctan2(around[..., 1], around[..., 0]), np.inf)
    order = np.argsort(angles, axis=1, kind="stable")
    ordered = np.take_along_axis(around, order[..., None], axis=1)
    # Places without a point repeat the first one, so that they add nothing.
    kept = np.arange(points.shape[1])[None, :] < counts[:, None]
    ordered = np.where(kept[..., None], ordered, ordered[:, :1, :])
    areas: Array = np.abs(_cross(ordered, np.roll(ordered, -1, axis=1)).sum(axis=1)) / 2
    return np.where(counts >= 3, areas, 0.0)
