"""Matching rows of a submission with rows of the answers.

| match | meaning |
|---|---|
| `id` | exactly the ids of the answers, in any order; repeated ids are paired in the order of the files |
| `join` | the same set of ids; an id that is repeated in the submission counts as often |
| `sorted` | both sorted by id, then paired one by one; ids are never compared |
| `sorted-known` | the same, but every id must be known (rows may be dropped by what their answers say) |
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

from mleredux_graders.frame.columns import Array
from mleredux_graders.frame.options import Options
from mleredux_graders.frame.tables import Table, is_missing


@dataclass(frozen=True)
class Rows:
    """Matched rows: row `submission_rows[i]` of the submission belongs to row `answer_rows[i]` of the answers."""

    submission: Table
    answers: Table
    ids: tuple[str, ...]
    targets: tuple[str, ...]
    """Columns of the submission with predictions."""
    truth: tuple[str, ...]
    """Columns of the answers with the truth."""
    submission_rows: Array
    answer_rows: Array
    weight: Array | None = field(default=None)
    """Shape (rows,), where the options name a column."""

    def predicted(self, column: str) -> Array:
        """A column of the submission, matched, shape (rows,)."""
        return self.submission[column][self.submission_rows]

    def true(self, column: str) -> Array:
        """A column of the answers, matched, shape (rows,)."""
        return self.answers[column][self.answer_rows]

    def __len__(self) -> int:
        return len(self.answer_rows)


def match_rows(
    submission: Table, answers: Table, ids: tuple[str, ...], how: str, dropped: Array | None = None
) -> tuple[Array, Array]:
    """Row numbers of the submission and of the answers that belong together; both of one length.

    Args:
        ids: Names of the id columns, the same in both tables.
        how: One of the words above.
        dropped: Rows of the answers that are not scored (booleans), for `sorted-known`.

    Raises:
        InvalidSubmission: The rows are not those that the answers have.
    """
    rows, expected = len(submission), len(answers)
    if how == "position-shortest":
        shortest = np.arange(min(rows, expected))
        return shortest, shortest
    if how not in ("join", "sorted-covering") and rows != expected:
        raise InvalidSubmission(f"The submission has {rows} rows where {expected} are expected.")
    if how == "position":
        return np.arange(rows), np.arange(expected)
    columns = ids[:1] if how == "group-position" else ids
    mine, theirs = [submission[name] for name in columns], [answers[name] for name in columns]
    if how == "sorted":
        return _order(mine), _order(theirs)
    if rows == expected and all(_equal(a, b) for a, b in zip(mine, theirs, strict=True)) and how != "sorted-covering":
        # Rows in the order of the answers need no matching, whatever their ids.
        if how not in ("join", "sorted-known"):
            return np.arange(rows), np.arange(expected)
    elif how == "same-order":
        raise InvalidSubmission(f"Column {columns[0]!r} must be that of the sample, row by row.")
    codes, wanted = _codes(mine, theirs)
    name = " and ".join(repr(column) for column in columns)
    unknown, missing = _differences(codes, wanted)
    if how == "sorted-covering":
        if missing:
            raise InvalidSubmission(f"Column {name} lacks {missing} of the ids that the sample has.")
        kept = np.flatnonzero(np.isin(codes, wanted))
        mine_sorted, theirs_sorted = kept[_order([column[kept] for column in mine])], _order(theirs)
        shortest_length = min(len(mine_sorted), len(theirs_sorted))
        return mine_sorted[:shortest_length], theirs_sorted[:shortest_length]
    if how == "sorted-known":
        if unknown:
            raise InvalidSubmission(f"Column {name} has {unknown} ids that the sample does not have.")
        return _sorted_known(mine, theirs, codes, wanted, dropped)
    _refuse_differences(codes, wanted, columns)
    if how == "join":
        return _join(codes, wanted)
    return _one_to_one(mine, theirs, codes, wanted, name, stable=how == "group-position")


def same_ids(submission: Table, answers: Table, ids: tuple[str, ...]) -> None:
    """Refuse a submission whose set of ids is not that of the answers; either may repeat them.

    Raises:
        InvalidSubmission: Ids are missing, or others are there.
    """
    _refuse_differences(*_codes([submission[name] for name in ids], [answers[name] for name in ids]), ids)


def _refuse_differences(codes: Array, wanted: Array, ids: tuple[str, ...]) -> None:
    unknown, missing = _differences(codes, wanted)
    if unknown or missing:
        name = " and ".join(repr(column) for column in ids)
        raise InvalidSubmission(
            f"Column {name} must hold the ids of the sample: {missing} of them are missing, {unknown} rows have others."
        )


def _one_to_one(
    mine: list[Array], theirs: list[Array], codes: Array, wanted: Array, name: str, *, stable: bool
) -> tuple[Array, Array]:
    repeated = len(np.unique(wanted)) != len(wanted)
    if repeated and not stable and len(mine) == 1 and mine[0].dtype.kind == "O":
        order, wanted_order = _order(mine), _order(theirs)
    else:
        order, wanted_order = np.argsort(codes, kind="stable"), np.argsort(wanted, kind="stable")
    if not np.array_equal(codes[order], wanted[wanted_order]):
        raise InvalidSubmission(f"Column {name} repeats ids; each id of the sample must occur as often as there.")
    found = np.empty(len(order), dtype=np.intp)
    found[wanted_order] = order
    return found, np.arange(len(wanted))


def _join(codes: Array, wanted: Array) -> tuple[Array, Array]:
    """Every pair of rows with one id, in the order of the answers."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    first, last = np.searchsorted(ordered, wanted, "left"), np.searchsorted(ordered, wanted, "right")
    counts = last - first
    starts = np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return order[starts + np.arange(counts.sum())], np.repeat(np.arange(len(wanted)), counts)


def _sorted_known(
    mine: list[Array], theirs: list[Array], codes: Array, wanted: Array, dropped: Array | None
) -> tuple[Array, Array]:
    kept = np.ones(len(wanted), dtype=bool) if dropped is None else ~dropped
    order, wanted_order = _order(mine), _order(theirs)
    scored = np.isin(codes, wanted[kept])
    order, wanted_order = order[scored[order]], wanted_order[kept[wanted_order]]
    if len(order) != len(wanted_order):
        raise InvalidSubmission(
            f"The ids that are scored occur {len(order)} times where {len(wanted_order)} are expected."
        )
    return order, wanted_order


def _differences(codes: Array, wanted: Array) -> tuple[int, int]:
    """Rows of the submission with an unknown id, and ids of the answers that it lacks."""
    unknown = int(np.count_nonzero(codes < 0) + np.count_nonzero(~np.isin(codes[codes >= 0], wanted)))
    missing = int(np.count_nonzero(~np.isin(np.unique(wanted), codes)))
    return unknown, missing


def _codes(mine: list[Array], theirs: list[Array]) -> tuple[Array, Array]:
    """Whole numbers in place of ids, equal where the ids are; -1 for a missing id of the submission."""
    import pandas as pd

    total = np.zeros(len(mine[0]) + len(theirs[0]), dtype=np.int64)
    lost = np.zeros(len(mine[0]), dtype=bool)
    for a, b in zip(mine, theirs, strict=True):
        lost |= is_missing(a)
        if (a.dtype.kind == "O") != (b.dtype.kind == "O"):
            lost[:] = True  # a text is never equal to a number
            a = a.astype(object)
            b = b.astype(object)
        elif {a.dtype.kind, b.dtype.kind} == {"i", "u"}:
            a, b = a.astype(object), b.astype(object)  # float64 would merge large ids
        column, _ = pd.factorize(np.concatenate([b, a]))
        total = total * (int(column.max(initial=0)) + 2) + column + 1
        total, _ = pd.factorize(total)
    wanted, codes = total[: len(theirs[0])], total[len(theirs[0]) :].copy()
    codes[lost] = -1
    return codes, wanted


def _equal(a: Array, b: Array) -> bool:
    if (a.dtype.kind == "O") != (b.dtype.kind == "O"):
        return False
    return bool(np.array_equal(a, b))


def _order(columns: list[Array]) -> Array:
    """The order that sorts rows by their ids, missing ids last.

    Text is sorted by NumPy's quicksort of objects, whose order of equal ids is the same everywhere and is that of the
    published graders; numbers keep the order of equal ids.
    """
    if len(columns) > 1:
        codes, _ = _codes_of_order(columns)
        return np.argsort(codes, kind="stable")
    (values,) = columns
    if values.dtype.kind != "O":
        return np.argsort(values, kind="stable")
    gaps = is_missing(values)
    filled = np.flatnonzero(~gaps)
    try:
        order = filled[np.argsort(values[filled], kind="quicksort")]
    except TypeError:
        raise InvalidSubmission(
            "The id column mixes texts and other values; write the ids as the sample does."
        ) from None
    return np.concatenate([order, np.flatnonzero(gaps)])


def _codes_of_order(columns: list[Array]) -> tuple[Array, int]:
    total = np.zeros(len(columns[0]), dtype=np.int64)
    for values in columns:
        order = _order([values])
        ordered = values[order]
        steps = np.ones(len(ordered), dtype=np.int64)
        if len(ordered):
            steps[0] = 0
            steps[1:] = ordered[1:] != ordered[:-1]
        ranks = np.empty(len(ordered), dtype=np.int64)
        ranks[order] = np.cumsum(steps)
        total = np.unique(total * (len(ordered) + 1) + ranks, return_inverse=True)[1]
    return total, len(columns)


def scored_rows(answers: Table, options: Options) -> Array | None:
    """Which rows of the answers are scored (booleans), or None where all are."""
    kept = None
    for column, value in options.where.items():
        here = answers[column] == value
        kept = here if kept is None else kept & here
    return kept
