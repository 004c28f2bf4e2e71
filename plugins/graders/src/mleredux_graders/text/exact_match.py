"""Exact match of text."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Cells, Rows, define

from mleredux_graders.text.cells import TextOptions, read_texts, true_texts


def _score(rows: Rows, y_pred: Cells, options: TextOptions) -> float:
    return float(np.average(true_texts(rows, options).equal(y_pred), weights=rows.weight))


GRADER = define("exact-match", "Exact match", "maximize", read_texts, _score, options=TextOptions, perfect=1.0)
