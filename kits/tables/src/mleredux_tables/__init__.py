"""For authors of metrics: read, check and match tables of submissions and answers, or reject them with one sentence.

Names other than `make_grader` and `find_function` are imported on first use, because they need NumPy and pandas.

| module | content |
|---|---|
| `plain_functions` | graders made from functions, for `Metric(grader=…)` |
| `table` | reading a table |
| `columns` | columns as arrays of numbers, labels or texts |
| `utf8`, `cells` | columns of text as arrays of bytes, and their cells |
| `ids` | ids of rows, and their comparison |
| `matching` | matching rows of a submission with those of the answers |
| `options` | options of metrics that match rows |
| `definition` | defining a grader by functions that read and score |
| `functions` | graders made from functions, and grading a pair of files |

A grader made from a function of arrays::

    from mleredux_tables import make_grader

    def mean_error(y_true, y_pred):
        return float(abs(y_true - y_pred).mean())

    GRADER = make_grader(mean_error, direction="minimize", perfect=0.0)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mleredux_tables.plain_functions import find_function as find_function
from mleredux_tables.plain_functions import make_grader as make_grader

if TYPE_CHECKING:
    from mleredux_tables.cells import Cells as Cells
    from mleredux_tables.cells import in_blocks as in_blocks
    from mleredux_tables.cells import predicted_cells as predicted_cells
    from mleredux_tables.cells import true_cells as true_cells
    from mleredux_tables.columns import Array as Array
    from mleredux_tables.columns import Missing as Missing
    from mleredux_tables.columns import Numbers as Numbers
    from mleredux_tables.columns import integers as integers
    from mleredux_tables.columns import number_labels as number_labels
    from mleredux_tables.columns import numbers as numbers
    from mleredux_tables.columns import only_text as only_text
    from mleredux_tables.columns import refuse as refuse
    from mleredux_tables.columns import text_labels as text_labels
    from mleredux_tables.columns import texts as texts
    from mleredux_tables.columns import within as within
    from mleredux_tables.definition import define as define
    from mleredux_tables.definition import parse_options as parse_options
    from mleredux_tables.definition import run as run
    from mleredux_tables.functions import Graded as Graded
    from mleredux_tables.functions import grade_files as grade_files
    from mleredux_tables.ids import compare_ids as compare_ids
    from mleredux_tables.matching import Rows as Rows
    from mleredux_tables.matching import match_rows as match_rows
    from mleredux_tables.options import Options as Options
    from mleredux_tables.table import Table as Table
    from mleredux_tables.table import exact_numbers as exact_numbers
    from mleredux_tables.table import is_missing as is_missing
    from mleredux_tables.table import read_table as read_table
    from mleredux_tables.utf8 import Utf8 as Utf8

_MODULES = ("cells", "columns", "definition", "functions", "ids", "matching", "options", "table", "utf8")


def __getattr__(name: str) -> Any:
    """Import names for tables on first use: NumPy and pandas take a second to import."""
    for module in () if name.startswith("_") or name in _MODULES else _MODULES:
        if hasattr(home := importlib.import_module(f"{__name__}.{module}"), name):
            return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
