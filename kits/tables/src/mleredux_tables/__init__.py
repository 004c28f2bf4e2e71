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

from typing import TYPE_CHECKING, Any

from mleredux_tables.plain_functions import find_function, make_grader

if TYPE_CHECKING:
    from mleredux_tables.cells import Cells, in_blocks, predicted_cells, true_cells
    from mleredux_tables.columns import (
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
    from mleredux_tables.definition import define, parse_options, run
    from mleredux_tables.functions import Graded, grade_files
    from mleredux_tables.ids import compare_ids
    from mleredux_tables.matching import Rows, match_rows
    from mleredux_tables.options import Options
    from mleredux_tables.table import Table, is_missing, read_table
    from mleredux_tables.utf8 import Utf8

__all__ = [
    "Array",
    "Cells",
    "Graded",
    "Missing",
    "Numbers",
    "Options",
    "Rows",
    "Table",
    "Utf8",
    "compare_ids",
    "define",
    "find_function",
    "grade_files",
    "in_blocks",
    "integers",
    "is_missing",
    "make_grader",
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


def __getattr__(name: str) -> Any:
    """Import names for tables on first use: NumPy and pandas take a second to import."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mleredux_tables import cells, columns, definition, functions, ids, matching, options, table, utf8

    homes = (cells, columns, definition, functions, ids, matching, options, table, utf8)
    return next(vars(home)[name] for home in homes if name in vars(home))
