"""How rows of a submission find their rows of the answers."""

from __future__ import annotations

import pandas as pd
import pytest
from mleredux.errors import InvalidSubmission
from mleredux_tables.matching import match_rows
from mleredux_tables.table import Table


def pairs(mine: list[object], theirs: list[object], how: str) -> list[tuple[int, int]]:
    tables = [Table(pd.DataFrame({"id": ids})) for ids in (mine, theirs)]
    one, other = match_rows(tables[0], tables[1], ("id",), how)
    return list(zip(one.tolist(), other.tolist(), strict=True))


@pytest.mark.parametrize(
    ("how", "mine", "theirs", "matched"),
    [
        ("id", ["b", "a"], ["a", "b"], [(1, 0), (0, 1)]),
        ("id", [2.0, 1.0], [1, 2], [(1, 0), (0, 1)]),
        ("id", ["a", "b", "a"], ["a", "a", "b"], [(0, 0), (2, 1), (1, 2)]),
        ("join", ["b", "a", "b"], ["a", "b"], [(1, 0), (0, 1), (2, 1)]),
        ("sorted", ["z", "y"], ["a", "b"], [(1, 0), (0, 1)]),
        ("sorted-known", ["b", "a", "a"], ["a", "b", "c"], [(1, 0), (2, 1), (0, 2)]),
        ("sorted-covering", ["c", "x", "b", "a"], ["b", "a"], [(2, 0), (3, 1)]),
        ("sorted-covering", ["c", "b", "b", "a"], ["b", "a"], [(3, 1), (1, 0)]),
        ("group-position", ["q", "p", "q"], ["p", "q", "q"], [(1, 0), (0, 1), (2, 2)]),
        ("same-order", ["a", "b"], ["a", "b"], [(0, 0), (1, 1)]),
        ("position", ["x", "y"], ["a", "b"], [(0, 0), (1, 1)]),
        ("position-shortest", ["x"], ["a", "b"], [(0, 0)]),
    ],
)
def test_rows_are_matched(how: str, mine: list[object], theirs: list[object], matched: list[tuple[int, int]]) -> None:
    assert pairs(mine, theirs, how) == matched


@pytest.mark.parametrize(
    ("how", "mine", "theirs", "said"),
    [
        ("id", ["a"], ["a", "b"], "1 row; 2"),
        ("id", ["a", "c"], ["a", "b"], "1 of them are missing, 1 row with unknown ids"),
        ("id", ["a", "a"], ["a", "b"], "1 of them are missing"),
        ("id", ["a", "b", "b"], ["a", "a", "b"], "repeats ids"),
        ("id", ["1", "x"], [1, 2], "2 of them are missing"),
        ("id", ["a", None], ["a", "b"], "1 of them are missing"),
        ("join", ["a", "a"], ["a", "b"], "1 of them are missing"),
        ("sorted", ["a"], ["a", "b"], "1 row; 2"),
        ("sorted-known", ["a", "x"], ["a", "b"], "1 ids that are not in the sample"),
        ("sorted-covering", ["a", "x"], ["a", "b"], "lacks 1 of the sample's ids"),
        ("group-position", ["p", "p", "q"], ["p", "q", "q"], "repeats ids"),
        ("same-order", ["b", "a"], ["a", "b"], "row by row"),
        ("position", ["a"], ["a", "b"], "1 row; 2"),
    ],
)
def test_other_rows_are_refused(how: str, mine: list[object], theirs: list[object], said: str) -> None:
    with pytest.raises(InvalidSubmission, match=said):
        pairs(mine, theirs, how)


def test_ids_of_several_columns_are_matched_as_a_whole() -> None:
    mine = Table(pd.DataFrame({"a": ["x", "y", "x"], "b": [1, 1, 2]}))
    theirs = Table(pd.DataFrame({"a": ["x", "x", "y"], "b": [2, 1, 1]}))
    one, other = match_rows(mine, theirs, ("a", "b"), "id")
    assert (one.tolist(), other.tolist()) == ([2, 0, 1], [0, 1, 2])
