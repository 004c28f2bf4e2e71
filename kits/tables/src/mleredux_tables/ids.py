"""Ids as integers, so that rows are matched without comparing text twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.models.formats import counted

from mleredux_tables.columns import Array
from mleredux_tables.table import Table, is_missing
from mleredux_tables.utf8 import Utf8, first_equals, sorted_with_places

if TYPE_CHECKING:
    import pandas as pd


_FEW = 1_000


@dataclass(frozen=True)
class Ids:
    """The ids of both tables as numbers, which are equal for equal ids.

    Attributes:
        name: The name of the id columns in error messages.
        theirs: Ids of the answers, from 0 in order of first appearance, shape (rows of the answers,).
        mine: Ids of the submission, shape (rows of the submission,); -1 if the answers don't have the id.
    """

    name: str
    theirs: Array
    mine: Array

    @cached_property
    def known(self) -> int:
        """The number of distinct ids in the answers."""
        return int(self.theirs.max(initial=-1)) + 1

    @cached_property
    def counts(self) -> Array:
        """How often each of these ids occurs in the submission, shape (known,)."""
        return np.bincount(self.mine[self.mine >= 0], minlength=self.known)

    @property
    def unknown(self) -> int:
        """The number of rows of the submission whose id is not in the answers."""
        return int(np.count_nonzero(self.mine < 0))

    @property
    def missing(self) -> int:
        """The number of ids of the answers that are not in the submission."""
        return int(np.count_nonzero(self.counts == 0))

    @property
    def unique(self) -> bool:
        """Whether no id of the answers occurs twice, in either table."""
        return self.known == len(self.theirs) and bool((self.counts <= 1).all())

    def places(self) -> Array:
        """Return the row of the submission for each id, if ids are unique and none is missing, shape (known,)."""
        positions = np.empty(self.known, dtype=np.intp)
        rows = np.flatnonzero(self.mine >= 0)
        positions[self.mine[rows]] = rows
        return positions

    def firsts(self) -> Array:
        """Return the first row of the answers with each id, shape (known,)."""
        rows: Array = np.unique(self.theirs, return_index=True)[1]
        return rows

    def refuse_differences(self) -> None:
        """Reject a set of ids that differs from that of the answers.

        Raises:
            InvalidSubmission: Ids are missing or unknown.
        """
        if self.unknown or self.missing:
            raise InvalidSubmission(
                f"Column {self.name} must contain the ids of the sample: {self.missing} of them are missing, "
                f"{counted(self.unknown, 'row')} with unknown ids."
            )


def compare_ids(submission: Table, answers: Table, columns: Sequence[str]) -> Ids:
    """Return the ids of both tables as numbers.

    Args:
        submission: The table of the submission.
        answers: The table of the answers.
        columns: The id columns, the same in both tables.
    """
    import pandas as pd

    expected = len(answers)
    total: Array | None = None
    lost = np.zeros(len(submission), dtype=bool)
    for name in columns:
        mine, theirs = submission.series(name), answers.series(name)
        lost |= np.asarray(mine.isna(), dtype=bool)
        if is_text(mine) != is_text(theirs):
            lost[:] = True  # text is never equal to a number
            mine = theirs.iloc[:0].reindex(range(len(mine)))
        codes = _codes(theirs, mine)
        if total is not None:
            codes, _ = pd.factorize(total * (int(codes.max(initial=0)) + 2) + codes + 1)
        total = codes
    codes = np.zeros(expected + len(submission), dtype=np.int64) if total is None else total
    ids = Ids(" and ".join(repr(name) for name in columns), codes[:expected], codes[expected:])
    ids.mine[lost | (ids.mine >= ids.known)] = -1
    return ids


def same_ids(theirs: pd.Series[Any], mine: pd.Series[Any]) -> Array | None:
    """Return the row of the submission for each id of the answers, if both have the same ids, each exactly once.

    Returns:
        Rows of the submission, shape (rows,); None if this is not the case, or can't be determined quickly.
    """
    keys = _keys(theirs, mine) if len(theirs) == len(mine) else None
    if keys is None:
        return None
    texts, (theirs_sorted, mine_sorted) = keys.texts, (sorted_with_places(side) for side in keys.numbers)
    places = np.uint64((1 << max(len(theirs) - 1, 1).bit_length()) - 1)
    if ((theirs_sorted ^ mine_sorted) > places).any():
        return None
    here, there = (theirs_sorted & places).astype(np.int64), (mine_sorted & places).astype(np.int64)
    twins = np.flatnonzero((theirs_sorted[1:] ^ theirs_sorted[:-1]) <= places)
    if len(twins) and (
        texts is None or (np.diff(twins) == 1).any() or texts[0].equal(here[twins], here[twins + 1]).any()
    ):
        return None
    codes = np.empty(len(theirs), dtype=np.int64)
    codes[here] = there
    if texts is None:
        return codes
    wrong = np.flatnonzero(~texts[0].equal(np.arange(len(codes)), codes, texts[1]))
    rows = {texts[1].cell(row): row for row in codes[wrong].tolist()}  # a few ids whose hashes start alike
    for row in wrong.tolist():
        cell = texts[0].cell(row)
        if cell not in rows:
            return None
        codes[row] = rows[cell]
    return codes


def same_places(submission: Table, answers: Table, columns: Sequence[str]) -> bool:
    """Return whether both tables have the same ids, row by row."""
    if len(submission) != len(answers):
        return False
    for name in columns:
        mine, theirs = submission.series(name), answers.series(name)
        if mine is theirs:
            continue
        if is_text(mine) != is_text(theirs):
            return False
        # If rows are in a different order, the first few rows usually show it.
        if not np.asarray(mine.array[:_FEW] == theirs.array[:_FEW], dtype=bool).all():
            return False
        if not np.asarray(mine.array == theirs.array, dtype=bool).all():
            return False
    return True


def is_text(values: pd.Series[Any]) -> bool:
    """Return whether a column was read as something other than numbers or booleans."""
    return getattr(values.dtype, "kind", "O") not in "biuf"


def sorted_rows(table: Table, columns: Sequence[str], rows: Array | None = None) -> Array:
    """Return row numbers in the order of the ids, missing ids last.

    Text is sorted by NumPy's quicksort of objects, whose order of equal ids is the same everywhere, namely that of the
    published graders; numbers keep the order of equal ids.

    Args:
        table: The table.
        columns: The id columns.
        rows: Restrict the result to these rows.

    Raises:
        InvalidSubmission: A column mixes strings and other values.
    """
    chosen = np.arange(len(table)) if rows is None else rows
    arrays = [table[name][chosen] for name in columns]
    if len(arrays) == 1:
        return chosen[_order(arrays[0])]
    return chosen[np.lexsort([_ranks(values) for values in reversed(arrays)])]


def _codes(theirs: pd.Series[Any], mine: pd.Series[Any]) -> Array:
    """Return integers from 0 by first appearance, the answers' first, -1 for missing ids, shape (all rows,)."""
    firsts = _first_equals(theirs, mine)
    if firsts is None:
        import pandas as pd

        return pd.factorize(_joined(theirs, mine))[0]
    new = firsts == np.arange(len(firsts))
    if new[: len(theirs)].all():
        return firsts  # all other ids of the submission count as unknown
    codes: Array = (np.cumsum(new) - 1)[firsts]
    return codes


def _first_equals(theirs: pd.Series[Any], mine: pd.Series[Any]) -> Array | None:
    """Return the position at which each id occurs first; None for ids that need a slower method."""
    keys = _keys(theirs, mine)
    if keys is None:
        return None
    return (
        first_equals(np.concatenate(keys.numbers))
        if keys.texts is None
        else (keys.texts[0] + keys.texts[1]).first_equals()
    )


class _Keys(NamedTuple):
    """Ids of both tables as numbers.

    Attributes:
        numbers: Numbers that are equal for equal ids, uint64; the upper bits distinguish nearly all others.
        texts: The ids themselves, if different ids may have equal numbers.
    """

    numbers: tuple[Array, Array]
    texts: tuple[Utf8, Utf8] | None


def _keys(theirs: pd.Series[Any], mine: pd.Series[Any]) -> _Keys | None:
    """Return the ids as numbers; None for ids that are neither all strings nor all plain integers."""
    kinds = [getattr(ids.dtype, "name", "") for ids in (theirs, mine)]
    if kinds == ["str", "str"] and not (theirs.hasnans or mine.hasnans):
        texts = Utf8.of_column(theirs), Utf8.of_column(mine)
        return _Keys((texts[0].hashes, texts[1].hashes), texts)
    if kinds == ["int64", "int64"] and len(theirs) and len(mine):
        numbers = [ids.to_numpy() for ids in (theirs, mine)]
        lowest, highest = min(int(side.min()) for side in numbers), max(int(side.max()) for side in numbers)
        span = (highest - lowest).bit_length() or 1
        if span + (len(theirs) + len(mine)).bit_length() <= 64:
            upper = [(side - lowest).astype(np.uint64) << np.uint64(64 - span) for side in numbers]
            return _Keys((upper[0], upper[1]), None)
    return None


def _joined(theirs: pd.Series[Any], mine: pd.Series[Any]) -> pd.Series[Any]:
    import pandas as pd

    if {getattr(theirs.dtype, "kind", "O"), getattr(mine.dtype, "kind", "O")} == {"i", "u"}:
        theirs, mine = theirs.astype(object), mine.astype(object)  # float64 would merge large ids
    return pd.concat([theirs, mine], ignore_index=True)


def _order(values: Array) -> Array:
    if values.dtype.kind != "O":
        return np.argsort(values, kind="stable")
    gaps = is_missing(values)
    filled = np.flatnonzero(~gaps)
    try:
        order = filled[np.argsort(values[filled], kind="quicksort")]
    except TypeError:
        raise InvalidSubmission("The id column mixes text with other values; write ids as the sample does.") from None
    return np.concatenate([order, np.flatnonzero(gaps)])


def _ranks(values: Array) -> Array:
    """Return integers that sort like the values, equal for equal values."""
    order = _order(values)
    ordered = values[order]
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(np.append(False, np.asarray(ordered[1:] != ordered[:-1], dtype=bool))[: len(order)])
    return ranks
