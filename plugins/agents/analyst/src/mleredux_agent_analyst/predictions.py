"""Predictions of training rows in `predictions.csv`, and common metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mleredux_agent_analyst.tables import Array, Tables

LABELS = ("accuracy", "balanced-accuracy", "error-rate", "f1", "cohen-kappa", "matthews-correlation")
ORDER = ("roc-auc", "average-precision")


@dataclass(frozen=True)
class Predictions:
    """Predictions of the training rows.

    Attributes:
        target: Classes as strings, or numbers.
        names: The classes; empty for numbers.
        values: Model → predictions, of shape (rows, classes) or (rows, 1).
    """

    target: Array
    names: list[str]
    values: dict[str, Array]


def read(tables: Tables, name: str = "predictions.csv") -> Predictions:
    """Read predictions: columns `MODEL` or `MODEL CLASS`; test rows have no target."""
    names = [] if not tables.classes else sorted(set(tables.labels))
    frame = pd.read_csv(tables.folder / name, dtype={"target": str} if names else None)
    columns = [name for name in frame.columns if name not in ("target", *tables.ids)]
    models = [name.partition(" ")[0] for name in columns]
    values: dict[str, Array] = {}
    for model in dict.fromkeys(models):
        own = [name for name, of in zip(columns, models, strict=True) if of == model]
        values[model] = frame[own].to_numpy(dtype=float)
        names = [name.partition(" ")[2] for name in own] if names else []
    target = frame["target"].to_numpy() if "target" in frame else np.zeros(0)
    return Predictions(target, names, values)


def score(metric: str, rows: Predictions, values: Array) -> float:
    """Return the score in a common metric; for unknown metrics, the log loss or the root mean squared error."""
    if not rows.names:
        errors = values[:, 0] - rows.target.astype(float)
        if metric == "mae":
            return float(np.abs(errors).mean())
        if metric == "rmsle":
            logs = np.log1p(np.maximum(values[:, 0], 0)) - np.log1p(rows.target.astype(float))
            return float(np.sqrt((logs**2).mean()))
        return float(1 - (errors**2).mean() / rows.target.var() if metric == "r2" else np.sqrt((errors**2).mean()))
    codes = np.searchsorted(np.array(rows.names), rows.target.astype(str))
    if metric in LABELS:
        return float((values.argmax(axis=1) == codes).mean())
    if metric in ORDER and len(rows.names) == 2:
        ranks = pd.Series(values[:, 1]).rank().to_numpy()
        hits = int(codes.sum())
        return float((ranks[codes == 1].sum() - hits * (hits + 1) / 2) / max(hits * (len(codes) - hits), 1))
    return float(-np.log(np.clip(values[np.arange(len(codes)), codes], 1e-6, 1)).mean())


def best_step(metric: str, rows: Predictions, y: Array) -> str:
    """Return the step that improves held-out rows most: each is fitted to every second row, in its simplest form."""
    fit, held = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
    truth = rows.target.astype(str) if rows.names else rows.target.astype(float)
    if rows.names:
        wanted = (truth[:, None] == np.array(rows.names)).astype(float)
        logs = np.log(np.clip(y, 1e-4, 1))
        powers = [_shares(np.exp(power * logs)) for power in np.geomspace(0.1, 10, 21)]
        columns = np.column_stack([np.ones(len(logs)), logs])
        ours = Predictions(rows.target[fit], rows.names, {})
        options = {
            "temperature": min(powers, key=lambda option: score("log-loss", ours, option[fit])),
            "sigmoid": _shares(columns @ np.linalg.lstsq(columns[fit], wanted[fit], rcond=None)[0]),
            "isotonic": _shares(np.column_stack([_bins(a, b, fit) for a, b in zip(y.T, wanted.T, strict=True)])),
        }
    else:
        factor = float(y[fit, 0] @ truth[fit] / max(float((y[fit, 0] ** 2).sum()), 1e-12))
        options = {"round": np.round(y), "scale": factor * y, "mean": _bins(y[:, 0], truth, fit)[:, None]}
    rest = Predictions(rows.target[held], rows.names, {})
    measure = metric if not rows.names else "log-loss"
    sign = -1.0 if measure == "r2" else 1.0
    return min(options, key=lambda step: sign * score(measure, rest, options[step][held]))


def _shares(values: Array) -> Array:
    return np.asarray(np.maximum(values, 1e-3) / np.maximum(values, 1e-3).sum(axis=1, keepdims=True))


def _bins(values: Array, truth: Array, fit: Array, rows: int = 40) -> Array:
    """Return the mean target in bins of similar predictions, computed on the fitted rows."""
    parts = np.array_split(np.flatnonzero(fit)[np.argsort(values[fit], kind="stable")], max(int(fit.sum()) // rows, 1))
    places, levels = ([float(of[part].mean()) for part in parts] for of in (values, truth))
    return np.asarray(np.interp(values, places, levels))


def constant(metric: str, rows: Predictions) -> Any:
    """Return the best constant by a rule of thumb: the median, the mean, the class shares, or the largest class."""
    if not rows.names:
        usual: dict[str, Any] = {"mae": np.median, "rmsle": lambda known: np.expm1(np.log1p(known).mean())}
        return float(usual.get(metric, np.mean)(rows.target.astype(float)))
    shares = {name: float((rows.target.astype(str) == name).mean()) for name in rows.names}
    return {max(shares, key=lambda name: shares[name]): 1.0} if metric in LABELS else shares
