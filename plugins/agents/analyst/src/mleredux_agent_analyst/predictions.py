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
        told = [name for name, of in zip(columns, models, strict=True) if of == model]
        values[model] = frame[told].to_numpy(dtype=float)
        names = [name.partition(" ")[2] for name in told] if names else []
    target = frame["target"].to_numpy() if "target" in frame else np.zeros(0)
    return Predictions(target, names, values)


def score(metric: str, found: Predictions, told: Array) -> float:
    """Return the score in a common metric; for unknown metrics, the log loss or the root mean squared error."""
    if not found.names:
        errors = told[:, 0] - found.target.astype(float)
        if metric == "mae":
            return float(np.abs(errors).mean())
        if metric == "rmsle":
            logs = np.log1p(np.maximum(told[:, 0], 0)) - np.log1p(found.target.astype(float))
            return float(np.sqrt((logs**2).mean()))
        return float(1 - (errors**2).mean() / found.target.var() if metric == "r2" else np.sqrt((errors**2).mean()))
    codes = np.searchsorted(np.array(found.names), found.target.astype(str))
    if metric in LABELS:
        return float((told.argmax(axis=1) == codes).mean())
    if metric in ORDER and len(found.names) == 2:
        ranks = pd.Series(told[:, 1]).rank().to_numpy()
        hits = int(codes.sum())
        return float((ranks[codes == 1].sum() - hits * (hits + 1) / 2) / max(hits * (len(codes) - hits), 1))
    return float(-np.log(np.clip(told[np.arange(len(codes)), codes], 1e-6, 1)).mean())


def best_step(metric: str, found: Predictions, told: Array) -> str:
    """Return the step that improves held-out rows most: each is fitted to every second row, in its simplest form."""
    fit, held = np.arange(len(told)) % 2 == 0, np.arange(len(told)) % 2 == 1
    truth = found.target.astype(str) if found.names else found.target.astype(float)
    if found.names:
        wanted = (truth[:, None] == np.array(found.names)).astype(float)
        logs = np.log(np.clip(told, 1e-4, 1))
        powers = [_shares(np.exp(power * logs)) for power in np.geomspace(0.1, 10, 21)]
        columns = np.column_stack([np.ones(len(logs)), logs])
        ours = Predictions(found.target[fit], found.names, {})
        options = {
            "temperature": min(powers, key=lambda one: score("log-loss", ours, one[fit])),
            "sigmoid": _shares(columns @ np.linalg.lstsq(columns[fit], wanted[fit], rcond=None)[0]),
            "isotonic": _shares(np.column_stack([_bins(a, b, fit) for a, b in zip(told.T, wanted.T, strict=True)])),
        }
    else:
        factor = float(told[fit, 0] @ truth[fit] / max(float((told[fit, 0] ** 2).sum()), 1e-12))
        options = {"round": np.round(told), "scale": factor * told, "mean": _bins(told[:, 0], truth, fit)[:, None]}
    rest = Predictions(found.target[held], found.names, {})
    measure = metric if not found.names else "log-loss"
    sign = -1.0 if measure == "r2" else 1.0
    return min(options, key=lambda step: sign * score(measure, rest, options[step][held]))


def _shares(told: Array) -> Array:
    return np.asarray(np.maximum(told, 1e-3) / np.maximum(told, 1e-3).sum(axis=1, keepdims=True))


def _bins(told: Array, truth: Array, fit: Array, rows: int = 40) -> Array:
    """Return the mean target in bins of similar predictions, computed on the fitted rows."""
    parts = np.array_split(np.flatnonzero(fit)[np.argsort(told[fit], kind="stable")], max(int(fit.sum()) // rows, 1))
    places, levels = ([float(of[part].mean()) for part in parts] for of in (told, truth))
    return np.asarray(np.interp(told, places, levels))


def constant(metric: str, found: Predictions) -> Any:
    """Return the best constant by a rule of thumb: the median, the mean, the class shares, or the largest class."""
    if not found.names:
        values = found.target.astype(float)
        usual: dict[str, Any] = {"mae": np.median, "rmsle": lambda known: np.expm1(np.log1p(known).mean())}
        return float(usual.get(metric, np.mean)(values))
    shares = {name: float((found.target.astype(str) == name).mean()) for name in found.names}
    return {max(shares, key=lambda name: shares[name]): 1.0} if metric in LABELS else shares
