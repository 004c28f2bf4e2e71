"""Properties of common metrics, by name, and the simplest post-processing that improves held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_agent_analyst.predictions import LABELS, ORDER, best_step, constant, read, score
from mleredux_agent_analyst.tables import Tables


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document: the median for absolute errors, otherwise the step that improves held-out rows most."""
    rows, metric = read(tables), tables.metric
    (values,) = rows.values.values()
    best = constant(metric, rows)
    level = np.array([[best.get(name, 0.0) for name in rows.names]] if rows.names else [[best]])
    asks, ignores = ("numbers", []) if not rows.names else ("probabilities", [])
    steps = ["median" if metric == "mae" else "log_mean" if metric == "rmsle" else best_step(metric, rows, values)]
    if metric in LABELS:
        asks, ignores, steps = "labels", ["sharpening"], ["none"]
    elif metric in ORDER:
        ignores, steps = ["sharpening", "class_weights"], ["none"]
    return {
        "asks": asks,
        "better": "higher" if tables.direction == "maximize" else "lower",
        "ignores": ignores,
        "constant": best,
        "constant_score": score(metric, rows, np.repeat(level, len(rows.target), axis=0)),
        "score": score(metric, rows, values),
        "improve": [step for step in steps if step != "none"],
        "steps": steps,
    }
