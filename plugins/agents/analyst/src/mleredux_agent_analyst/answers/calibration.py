"""Accuracy against confidence of each model, and the simplest calibration for miscalibrated models."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_agent_analyst.predictions import LABELS, best_step, read
from mleredux_agent_analyst.tables import Array, Tables

LEAST, BINS = 0.02, 10


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document; the mean probability of each class is compared with its share."""
    predictions = read(tables)
    codes = np.searchsorted(np.array(predictions.names), predictions.target.astype(str))
    models = []
    for name, values in predictions.values.items():
        sure, right = values.max(axis=1), (values.argmax(axis=1) == codes).astype(float)
        bins = np.minimum((sure * BINS).astype(int), BINS - 1)
        verdict = {1: "overconfident", -1: "underconfident", 0: "calibrated"}[_side(sure - right)]
        sides = {label: _side(values[:, code] - (codes == code)) for code, label in enumerate(predictions.names)}
        classes = [{"name": n, "side": "too_often" if side > 0 else "too_seldom"} for n, side in sides.items() if side]
        models.append(
            {
                "model": name,
                "accuracy": float(right.mean()),
                "confidence": float(sure.mean()),
                "error": float(np.abs(np.bincount(bins, sure - right)).sum() / len(sure)),
                "verdict": verdict,
                "classes": classes,
                "method": "none" if verdict == "calibrated" else best_step(tables.metric, predictions, values),
            }
        )
    return {"models": models, "decision": "thresholds" if tables.metric in LABELS[2:] else "argmax"}


def _side(apart: Array) -> int:
    bound = max(LEAST, 3 * float(apart.std()) / np.sqrt(len(apart)))
    return int(np.sign(apart.mean())) if abs(float(apart.mean())) > bound else 0
