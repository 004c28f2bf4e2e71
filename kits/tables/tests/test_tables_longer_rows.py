"""Rows that are longer than the header are refused, not shifted by a column."""

from __future__ import annotations

import io
import time

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


_CELL = b"x" * (2 << 20)
SLOW: dict[str, tuple[bytes, str]] = {
    "a million cells in a row": (b"id,a\n1,2" + b"," * 1_000_000 + b"\n", "more cells than the header"),
    "after a long cell": (b'id,a\n"' + _CELL + b'"' + b"," * 1_000_000 + b"\n", "more cells than the header"),
    "half a million columns": (b"id" + b",a" * 500_000 + b"\n1\n", "has 500,001 columns"),
    "a million columns without a name": (b"," * 1_000_000 + b"\n1\n", "has 1,000,001 columns"),
    "a long row that does not end": (b"id,a\n" + _CELL * 9, "first row of the submission is over 16 MiB"),
    "a quoted cell that does not end": (
        b'id,a\n1,"' + b"2,3\n" * (5 << 20),
        "first row of the submission is over 16 MiB",
    ),
}


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.attack
def test_tables_that_take_forever_to_read_are_refused_at_once(name: str) -> None:
    content, message = SLOW[name]
    before = time.process_time()
    with pytest.raises(InvalidSubmission, match=message):
        read_table(io.BytesIO(content))
    assert time.process_time() - before < 10


def test_long_cells_and_many_columns_are_read() -> None:
    assert read_table(io.BytesIO(b'id,a\n1,"' + _CELL + b'"\n2,3\n')).columns == ("id", "a")
    names = ",".join(f"c{number}" for number in range(5_000))
    assert len(read_table(io.BytesIO(f"{names}\n{names}\n".encode())).columns) == 5_000


@pytest.mark.parametrize("other", ["A", " a", "a ", "a\t", "a\u00a0", "\u200ba", "\ufeffa", '"a "', '" A"'])
@pytest.mark.parametrize("order", ["id,a,{other}", "{other},id,a", "id,{other},a"])
def test_a_column_that_occurs_again_in_another_spelling_is_refused(other: str, order: str) -> None:
    table = read_table(io.BytesIO(f"x,{order.format(other=other)}\n1,2,3,4\n".encode()))
    with pytest.raises(InvalidSubmission, match="keep one of them"):
        table.require(["id", "a"])
    table.require(["id", "a", table.columns[1 + order.split(",").index("{other}")]])
    read_table(io.BytesIO(b"x,id,a,ab,a_,b a\n1,2,3,4,5,6\n")).require(["id", "a"])
