"""Mean columnwise root mean squared error, over some of the columns and some of the rows."""

from __future__ import annotations

import numpy as np
from mleredux.plugin.grader import Score
from mleredux_tables import Array, Rows, define, numbers

from mleredux_graders.regression.errors import root_mean_squared_error
from mleredux_graders.regression.values import ValueOptions


class McrmseOptions(ValueOptions):
    """Options of the metric."""

    scored: tuple[str, ...] = ()
    """Scored columns, if some required columns are not scored."""
    keep: str | None = None
    """Column of the answers that marks the scored rows."""
    keep_by_file_row: bool = False
    """Quirk of stanford-covid-vaccine: row r of the submission's FILE is scored if row r of the answers is scored; the
    selected rows of both are then paired in the order of their ids. This is correct only for submissions in the order
    of the answers."""

    def form_columns(self) -> tuple[str, ...]:
        """Return the columns that the options name."""
        return (*super().form_columns(), *((self.keep,) if self.keep else ()))


def _scored(rows: Rows, options: McrmseOptions) -> tuple[Array, Array]:
    """Return the scored rows of the submission and of the answers."""
    mine, theirs = rows.submission_rows, rows.answer_rows
    if options.keep is not None:
        kept = rows.answers[options.keep].astype(bool)
        order = np.argsort(rows.answers[rows.ids[0]][theirs], kind="stable")
        mine, theirs = mine[order], theirs[order]
        mine = mine[kept[mine] if options.keep_by_file_row else kept[theirs]]
        theirs = theirs[kept[theirs]]
    return mine, theirs


def _read(rows: Rows, options: McrmseOptions) -> dict[str, Array]:
    mine, _ = _scored(rows, options)
    return {name: numbers(rows.submission[name][mine], name) for name in options.scored or rows.targets}


def _score(rows: Rows, predictions: dict[str, Array], options: McrmseOptions) -> Score:
    _, theirs = _scored(rows, options)
    errors = {
        name: root_mean_squared_error(numbers(rows.answers[name][theirs], name), y_pred)
        for name, y_pred in predictions.items()
    }
    return Score(value=float(np.mean(list(errors.values()))), details={"columns": errors})


GRADER = define(
    "mcrmse",
    "Mean columnwise root mean squared error",
    "minimize",
    _read,
    _score,
    options=McrmseOptions,
    perfect=0.0,
)
