"""What all graders share: reading tables, matching rows, turning columns into arrays, and refusing in one sentence."""

from mleredux_graders.frame.cells import Cells, in_blocks, predicted_cells, true_cells
from mleredux_graders.frame.columns import Array, Missing, Numbers, numbers, texts
from mleredux_graders.frame.grading import define
from mleredux_graders.frame.matching import Rows
from mleredux_graders.frame.options import Options
from mleredux_graders.frame.tables import Table, read_table

__all__ = [
    "Array",
    "Cells",
    "Missing",
    "Numbers",
    "Options",
    "Rows",
    "Table",
    "define",
    "in_blocks",
    "numbers",
    "predicted_cells",
    "read_table",
    "texts",
    "true_cells",
]
