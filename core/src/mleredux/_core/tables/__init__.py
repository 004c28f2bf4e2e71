"""Tables of submissions and answers: read, matched row by row, turned into arrays, or refused in one sentence.

It needs NumPy and pandas, which the extra `mleredux[tables]` installs; nothing else of core imports it at start-up.
"""

from __future__ import annotations

try:
    import numpy as _numpy  # noqa: F401
    import pandas as _pandas  # noqa: F401
except ImportError as error:
    raise ImportError(
        "Grading tables needs NumPy and pandas. Install them with `pip install 'mleredux[tables]'`."
    ) from error

from mleredux._core.tables.cells import Cells, in_blocks, predicted_cells, true_cells
from mleredux._core.tables.columns import (
    Array,
    Missing,
    Numbers,
    integers,
    number_labels,
    numbers,
    only_text,
    refuse,
    text_labels,
    texts,
    within,
)
from mleredux._core.tables.definition import define, parse_options, run
from mleredux._core.tables.ids import compare_ids
from mleredux._core.tables.matching import Rows, match_rows
from mleredux._core.tables.options import Options
from mleredux._core.tables.table import Table, is_missing, read_table
from mleredux._core.tables.utf8 import Utf8

__all__ = [
    "Array",
    "Cells",
    "Missing",
    "Numbers",
    "Options",
    "Rows",
    "Table",
    "Utf8",
    "compare_ids",
    "define",
    "in_blocks",
    "integers",
    "is_missing",
    "match_rows",
    "number_labels",
    "numbers",
    "only_text",
    "parse_options",
    "predicted_cells",
    "read_table",
    "refuse",
    "run",
    "text_labels",
    "texts",
    "true_cells",
    "within",
]
