"""Match rows of a submission with rows of the answers.

| match | meaning |
|---|---|
| `id` | exactly the ids of the answers, in any order; repeated ids are paired in the order of the files |
| `join` | the same set of ids; an id that is repeated in the submission counts as often |
| `sorted` | both sorted by id, then paired one by one; ids are never compared |
| `sorted-known` | the same, but every id must be known (rows may be dropped depending on their answers) |
| `sorted-covering` | the same, with unknown ids dropped; each id of the answers must occur |
| `group-position` | by position within each group of the first id column |
| `same-order` | by position, and ids must be equal |
| `position` | by position alone |
| `position-shortest` | by position alone; the longer table is cut |
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.models.formats import counted

from mleredux_tables.columns import Array
from mleredux_tables.ids import Ids, compare_ids, is_text, same_ids, same_places, sorted_rows
from mleredux_tables.options import Options
from mleredux_tables.table import Table


@dataclass(frozen=True)
class Rows:
    """Matched rows: row `submission_rows[i]` of the submission belongs to row `answer_rows[i]` of the answers."""

    submission: Table
    """The submitted table."""
    answers: Table
    """The table of answers."""
    ids: tuple[str, ...]
    """Names of the id columns."""
    targets: tuple[str, ...]
    """Columns of the submission with predictions."""
    truth: tuple[str, ...]
    """Columns of the answers with the true values."""
    submission_rows: Array
    """Row indices into the submission, shape `(n,)`."""
    answer_rows: Array
    """Row indices into the answers, shape `(n,)`."""
    weight: Array | None = field(default=None)
    """The weights, shape (rows,), if the options name a weight column."""
    form: bool = False
    """Whether the answers are only the sample, so that checks that depend on the true values are impossible."""
    dropped: Array | None = None
    """Which rows of the answers are not scored, as booleans, if rows are not matched."""

    def predicted(self, column: str) -> Array:
        """Return a column of the submission in matched order, shape (rows,)."""
        return self.submission[column][self.submission_rows]

    def true(self, column: str) -> Array:
        """Return a column of the answers in matched order, shape (rows,)."""
        return self.answers[column][self.answer_rows]

    def __len__(self) -> int:
        return len(self.answer_rows)


def match_rows(
    submission: Table, answers: Table, ids: tuple[str, ...], how: str, dropped: Array | None = None
) -> tuple[Array, Array]:
    """Return the row numbers of the submission and of the answers that belong together, in two arrays of the same
    length.

    Args:
        submission: The table of the submission.
        answers: The table of the answers.
        ids: Names of the id columns, the same in both tables.
        how: One of the methods listed above.
        dropped: Rows of the answers that are not scored (booleans), for `sorted-known`.

    Raises:
        InvalidSubmission: The rows do not match those of the answers.
    """
    rows, expected = len(submission), len(answers)
    if how == "position-shortest":
        shortest = np.arange(min(rows, expected))
        return shortest, shortest
    if how not in ("join", "sorted-covering") and rows != expected:
        raise InvalidSubmission(f"The submission has {counted(rows, 'row')}; {expected:,} are expected.")
    if how == "position":
        return np.arange(rows), np.arange(expected)
    columns = ids[:1] if how == "group-position" else ids
    if how == "sorted":
        return sorted_rows(submission, columns), sorted_rows(answers, columns)
    if how in ("id", "group-position", "same-order") and same_places(submission, answers, columns):
        # Rows in the order of the answers need no matching, whatever their ids.
        return np.arange(rows), np.arange(expected)
    if how == "same-order":
        raise InvalidSubmission(f"Column {columns[0]!r} must equal the sample's, row by row.")
    if len(columns) == 1:
        places = same_ids(answers.series(columns[0]), submission.series(columns[0]))
        if places is not None:
            scored = np.arange(expected) if dropped is None or how != "sorted-known" else np.flatnonzero(~dropped)
            return places[scored], scored
    comparison = compare_ids(submission, answers, columns)
    if how == "sorted-covering":
        return _sorted_covering(submission, answers, columns, comparison)
    if how == "sorted-known":
        return _sorted_known(submission, answers, columns, comparison, dropped)
    comparison.refuse_differences()
    if comparison.unique:
        return comparison.places()[comparison.theirs], np.arange(expected)
    if how == "join":
        return _join(comparison)
    return _repeated(submission, answers, columns, comparison, stable=how == "group-position")


def _repeated(
    submission: Table, answers: Table, columns: tuple[str, ...], ids: Ids, *, stable: bool
) -> tuple[Array, Array]:
    """Return rows paired in sorted order, for ids that are repeated in the answers."""
    if not stable and len(columns) == 1 and is_text(answers.series(columns[0])):
        order, wanted = sorted_rows(submission, columns), sorted_rows(answers, columns)
    else:
        order, wanted = np.argsort(ids.mine, kind="stable"), np.argsort(ids.theirs, kind="stable")
    if not np.array_equal(ids.mine[order], ids.theirs[wanted]):
        raise InvalidSubmission(f"Column {ids.name} repeats ids; each id must occur as often as in the sample.")
    counts = np.empty(len(order), dtype=np.intp)
    counts[wanted] = order
    return counts, np.arange(len(wanted))


def _join(ids: Ids) -> tuple[Array, Array]:
    """Return all pairs of rows with the same id, in the order of the answers."""
    order = np.argsort(ids.mine, kind="stable")
    ordered = ids.mine[order]
    first, last = np.searchsorted(ordered, ids.theirs, "left"), np.searchsorted(ordered, ids.theirs, "right")
    counts = last - first
    starts = np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return order[starts + np.arange(counts.sum())], np.repeat(np.arange(len(ids.theirs)), counts)


def _sorted_covering(submission: Table, answers: Table, columns: tuple[str, ...], ids: Ids) -> tuple[Array, Array]:
    if ids.missing:
        raise InvalidSubmission(f"Column {ids.name} lacks {ids.missing} of the sample's ids.")
    if ids.unique:
        return ids.places()[ids.theirs], np.arange(len(ids.theirs))
    order = sorted_rows(submission, columns, np.flatnonzero(ids.mine >= 0))
    wanted = sorted_rows(answers, columns)
    shortest = min(len(order), len(wanted))
    return order[:shortest], wanted[:shortest]


def _sorted_known(
    submission: Table, answers: Table, columns: tuple[str, ...], ids: Ids, dropped: Array | None
) -> tuple[Array, Array]:
    if ids.unknown:
        raise InvalidSubmission(f"Column {ids.name} has {ids.unknown} ids that are not in the sample.")
    kept = np.ones(len(ids.theirs), dtype=bool) if dropped is None else ~dropped
    scored = np.zeros(ids.known, dtype=bool)
    scored[ids.theirs[kept]] = True
    order, wanted = sorted_rows(submission, columns), sorted_rows(answers, columns)
    order, wanted = order[scored[ids.mine[order]]], wanted[kept[wanted]]
    if len(order) != len(wanted):
        raise InvalidSubmission(f"The submission has {len(order):,} scored rows; {len(wanted):,} are expected.")
    return order, wanted


def scored_rows(answers: Table, options: Options) -> Array | None:
    """Return which rows of the answers are scored (booleans), or None if all are."""
    kept = None
    for column, value in options.where.items():
        here = answers[column] == value
        kept = here if kept is None else kept & here
    return kept
