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
    """Read predictions: columns `MODEL` or `MODEL CLASS`; those of test rows have no target."""
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
    """Return the score by a common metric; for unknown ones, the log loss or the root mean squared error."""
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


def constant(metric: str, found: Predictions) -> Any:
    """Return the best constant by a rule of thumb: the median, the mean, the class shares, or the largest class."""
    if not found.names:
        values = found.target.astype(float)
        usual: dict[str, Any] = {"mae": np.median, "rmsle": lambda known: np.expm1(np.log1p(known).mean())}
        return float(usual.get(metric, np.mean)(values))
    shares = {name: float((found.target.astype(str) == name).mean()) for name in found.names}
    return {max(shares, key=lambda name: shares[name]): 1.0} if metric in LABELS else shares
