"""Rows that are longer than the header are refused, not shifted by a column."""

from __future__ import annotations

import io

import pytest
from mleredux.errors import InvalidSubmission
from mleredux_tables.table import read_table


@pytest.mark.parametrize("row", ["{n},1,9", "{n},1,", "row-{n},1,9", '"{n},0",1,', "{n},1,9,9"])
@pytest.mark.parametrize("first", [0, 1, 7])
@pytest.mark.parametrize("before", ["", "\n", "\ufeff"])
def test_longer_rows_are_refused(row: str, first: int, before: str) -> None:
    lines = [f"{before}id,a", *(row.format(n=first + number) for number in range(3))]
    with pytest.raises(InvalidSubmission, match="more cells than the header"):
        read_table(io.BytesIO("\n".join(lines).encode()))


@pytest.mark.parametrize("text", ["id,a\n", "id,a\n1,2\n", 'id,a\n"1,2\n3",4\n', "id,a,\n1,2,\n", "id,a\n1\n2,3\n"])
def test_others_are_read(text: str) -> None:
    assert read_table(io.BytesIO(text.encode())).columns[:2] == ("id", "a")
