"""Cells are read as pandas 2 reads them, by which the published scores were computed."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from mleredux.errors import InvalidSubmission
from mleredux_tables import numbers
from mleredux_tables.table import read_table

HUGE = "99999999999999999999"


def column(*cells: str) -> Any:
    lines = ["id,v", *(f"r{number},{cell}" for number, cell in enumerate(cells))]
    return read_table(io.BytesIO("\n".join(lines).encode()))["v"]


@pytest.mark.parametrize(
    "cells",
    [
        (HUGE, "1"),
        ("1", "-9223372036854775809"),
        ("007", HUGE),
        (" 1", "+5", HUGE),
        ("1", "1E400"),
        ("inf", "1e999"),
        (HUGE, "0.5"),
        ("9" * 5000, "1"),
    ],
)
def test_numbers_beyond_their_type_make_a_column_text(cells: tuple[str, ...]) -> None:
    assert list(column(*cells)) == list(cells)


@pytest.mark.parametrize("cells", [(HUGE, "", "seven"), ("5", HUGE, "NA", "x"), ("-9223372036854775809", "nan")])
def test_missing_cells_stay_missing_beside_huge_numbers(cells: tuple[str, ...]) -> None:
    missing = [cell in ("", "NA", "nan") for cell in cells]
    assert [value != value for value in column(*cells)] == missing


@pytest.mark.parametrize("cells", [("0.5", HUGE), ("inf", "0.5"), ("-Infinity", "1"), ("", "inf"), ("1e308", "2")])
def test_other_numbers_stay_numbers(cells: tuple[str, ...]) -> None:
    np.testing.assert_array_equal(column(*cells), [float(cell or "nan") for cell in cells])


@pytest.mark.parametrize("cell", ["NAN", "Nan", "naN", "+nan", " nan", "-NAN", "nan "])
def test_only_what_pandas_calls_missing_is_missing(cell: str) -> None:
    with pytest.raises(InvalidSubmission, match="must contain numbers only; row 2 does not"):
        numbers(column("0.5", cell), "v", finite=False)
