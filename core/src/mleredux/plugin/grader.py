"""For authors of graders: the declaration of a metric, and functions to read, check and match tables.

`run_confined` executes submitted code; never execute it in the grader's own process.
The names for tables need `mleredux[tables]` and are imported on first use::

    from mleredux.plugin.grader import Grader, GradingInput, Score

    def score(given: GradingInput) -> Score:
        return Score(value=float(len(given.submission.read_bytes())))

    GRADER = Grader(id="size", title="Size in bytes", direction="minimize", score=score)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mleredux._core.execution.returns import MEAN_RETURN
from mleredux._core.functions import make_grader
from mleredux._core.sandboxes.confined import Confined, run_confined
from mleredux.models import FormInput, Grader, GradingInput, Score, Verdict

if TYPE_CHECKING:
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
    "MEAN_RETURN",
    "Array",
    "Cells",
    "Confined",
    "FormInput",
    "Grader",
    "GradingInput",
    "Missing",
    "Numbers",
    "Options",
    "Rows",
    "Score",
    "Table",
    "Utf8",
    "Verdict",
    "compare_ids",
    "define",
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
    "run_confined",
    "text_labels",
    "texts",
    "true_cells",
    "within",
]


def __getattr__(name: str) -> Any:
    """Import names for tables on first use: NumPy and pandas take a second to import.

    Raises:
        ImportError: They are not installed.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mleredux._core.tables import cells, columns, definition, ids, matching, options, table, utf8

    homes = (cells, columns, definition, ids, matching, options, table, utf8)
    return next(vars(home)[name] for home in homes if name in vars(home))
