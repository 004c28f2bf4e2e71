"""Scores of models, copies found by correlation, and a mean of models whose predictions look alike on the test set."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_agent_analyst.predictions import read, score
from mleredux_agent_analyst.tables import Tables

SAME, SURER = 0.995, 1.25


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document: models that spread more on training rows are optimistic; the better half of the others is
    averaged.
    """
    ours, theirs = read(tables), read(tables, "test_predictions.csv")
    sign = 1.0 if tables.direction == "maximize" else -1.0
    scores = {name: score(tables.metric, ours, values) for name, values in ours.values.items()}
    wide = {
        n: float(t.std(axis=0).mean() / (theirs.values[n].std(axis=0).mean() + 1e-9)) for n, t in ours.values.items()
    }
    names = list(scores)
    alike = np.atleast_2d(np.corrcoef([(values - values.mean(axis=0)).ravel() for values in ours.values.values()]))
    copies = [[names[a], names[b]] for a, b in np.argwhere(np.triu(alike, 1) > SAME)]
    honest = sorted((n for n in names if wide[n] <= SURER), key=lambda name: -sign * scores[name]) or names
    kept = honest[: max(1, len(honest) // 2)]
    models = [
        {"model": n, "score": scores[n], "optimistic": wide[n] > SURER, "weight": 1.0 if n in kept else 0.0}
        for n in names
    ]
    return {"models": models, "copies": copies}
