"""Exact match of text."""

from __future__ import annotations

import numpy as np
from mleredux.plugin.grader import Rows, define

from mleredux_graders.text.cells import TextOptions, matched_texts


def _score(rows: Rows, options: TextOptions) -> float:
    y_true, y_pred = matched_texts(rows, options)
    return float(np.average(y_true.equal(y_pred), weights=rows.weight))


GRADER = define("exact-match", "Exact match", "maximize", _score, options=TextOptions, perfect=1.0)
