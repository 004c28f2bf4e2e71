"""Class scores and probabilities as columns of numbers, shared by the metrics on them."""

from __future__ import annotations

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.plugin.task import Model
from mleredux_tables import Array, Options, Rows, is_missing, numbers, refuse, within

Bounds = tuple[float | None, float | None] | None


class RowSum(Model):
    """Tolerance with which the probabilities of a row must add up to 1."""

    rtol: float = 0.0
    atol: float = 1e-3
    """The sum may differ from 1 by `atol + rtol`."""
    decimals: int | None = None
    """Number of decimals; the rounded sum must be 1, instead of meeting the tolerances."""


class ScoreOptions(Options):
    """Options of the metrics on scores."""

    bounds: Bounds = None
    """The smallest and the largest allowed value, both inclusive."""


class ProbabilityOptions(ScoreOptions):
    """Options of the metrics on probabilities."""

    bounds: Bounds = (0.0, 1.0)
    row_sum: RowSum | None = RowSum()
    """Checked if there is a column per class."""


def read_scores(rows: Rows, options: ScoreOptions) -> Array:
    """Return finite numbers of all target columns, float64, shape (rows, targets).

    Raises:
        InvalidSubmission: A cell is missing, infinite, not a number, or out of bounds.
    """
    columns = [within(numbers(rows.predicted(name), name), name, options.bounds) for name in rows.targets]
    return np.column_stack(columns) if columns else np.empty((len(rows), 0))


def read_probabilities(rows: Rows, options: ProbabilityOptions) -> Array:
    """Return probabilities of all target columns, float64, shape (rows, targets).

    Raises:
        InvalidSubmission: A cell is not a probability, or a row does not add up to 1.
    """
    probabilities = read_scores(rows, options)
    if len(rows.targets) > 1 and options.row_sum is not None:
        check_row_sums(probabilities, options.row_sum)
    return probabilities


def check_row_sums(probabilities: Array, how: RowSum) -> None:
    """Check that rows add up to 1.

    Raises:
        InvalidSubmission: A row does not add up to 1.
    """
    sums = probabilities.sum(axis=1)
    if how.decimals is not None:
        faulty = np.round(sums, how.decimals) != 1
    else:
        faulty = ~(np.abs(sums - 1) <= how.atol + how.rtol)
    refuse(faulty, "The probabilities of each row must add up to 1; those of row {row} do not.")


def true_indicators(rows: Rows) -> Array:
    """Return the truth as 0 and 1 per target column, float64, shape (rows, targets).

    The answers contain a column per target; or one column of labels, which name the target columns; or, for a single
    target, one column with two labels, of which the one that sorts last is 1.
    """
    if len(rows.truth) == len(rows.targets):
        columns = [rows.true(name) for name in rows.truth]
        if len(columns) == 1:
            columns = [_last_label(columns[0])]
        return np.column_stack([column.astype(np.float64) for column in columns])
    labels = np.array([_name(label) for label in rows.true(rows.truth[0])], dtype=object)
    indicators: Array = (labels[:, None] == np.array(rows.targets, dtype=object)[None, :]).astype(np.float64)
    refuse(indicators.sum(axis=1) == 0, "The submission has no column for the classes of some answers.")
    return indicators


def _last_label(values: Array) -> Array:
    if values.dtype.kind in "biuf" and np.isin(values, (0, 1)).all():
        return values
    labels = sorted(set(values[~is_missing(values)].tolist()), key=str)
    if len(labels) > 2:
        raise InvalidSubmission("The answers have more than two classes, but there is only one column of scores.")
    last: Array = values == labels[-1]
    return last


def _name(label: object) -> str:
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label)
