"""Exact reading of tables, and derived tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from mleredux.errors import DataError

if TYPE_CHECKING:
    from typing import IO

    import pandas as pd

    Table = pd.DataFrame
    Column = pd.Series[Any]
else:  # pandas is imported where it is used
    Table = Column = Any


def read_csv(file: IO[bytes] | Any, where: str, columns: Iterable[str] = (), **options: Any) -> pd.DataFrame:
    """Read a raw CSV with exact (round-trip) floats, regardless of the pandas version.

    Args:
        file: A path or an open file.
        where: The file's name in messages.
        columns: Required columns.
        options: Options of `pandas.read_csv`.

    Raises:
        DataError: The file can't be read, has no rows, lacks columns, or is truncated.
    """
    import pandas as pd
    from mleredux_tables import exact_numbers

    try:
        table: pd.DataFrame = pd.read_csv(file, **{**exact_numbers(), **options})
    except (ValueError, EOFError) as error:  # pandas' own errors are ValueErrors
        raise DataError(
            f"Cannot read {where} as a table: {' '.join(str(error).split())}.",
            hint="Get the raw data again.",
        ) from error
    missing = [column for column in columns if column not in table.columns]
    if missing:
        present = ", ".join(map(str, table.columns[:10]))
        raise DataError(
            f"{where} lacks the columns {', '.join(missing)}; it has {present}.",
            hint="Check that it is this competition's file.",
        )
    if table.empty:
        raise DataError(f"{where} has no rows.", hint="Get the raw data again; the download may be incomplete.")
    if bool(table.iloc[-1:, -1].isna().all()) and _breaks_off(file):
        raise DataError(f"{where} ends in the middle of its last row.", hint="It is truncated; get the raw data again.")
    return table


def _breaks_off(file: Any) -> bool:
    """Return whether a file ends without a line end or separator, so that an empty last cell may have been lost."""
    if not isinstance(file, Path):
        return False
    with file.open("rb") as content:
        content.seek(-1, os.SEEK_END)
        return content.read(1) not in b"\r\n,;\t"


def filled(table: pd.DataFrame, ids: Sequence[str], fill: Mapping[str, Any]) -> pd.DataFrame:
    """Return a sample submission: the id columns, then filled columns with one value, or one value per row."""
    import pandas as pd

    return pd.concat([table[list(ids)], pd.DataFrame(dict(fill), index=table.index)], axis=1)


def one_hot(table: pd.DataFrame, ids: Sequence[str], label: str, classes: Sequence[str]) -> pd.DataFrame:
    """Return the id columns, then one integer column per class: 1 for the row's label, 0 elsewhere."""
    import numpy as np
    import pandas as pd

    hits = table[label].to_numpy()[:, None] == np.asarray(classes, dtype=object)[None, :]
    indicators = pd.DataFrame(hits.astype(np.int64), columns=list(classes), index=table.index)
    return pd.concat([table[list(ids)], indicators], axis=1)


def renumbered(table: pd.DataFrame, column: str, start: int = 0) -> pd.DataFrame:
    """Return the table with a column replaced by running numbers in row order."""
    return table.assign(**{column: range(start, start + len(table))})


def texts(table: pd.DataFrame, pattern: str) -> list[str]:
    """Format a text per row from a pattern such as `"{label}/{id}.png"` or `"{id[0]}/{id}.npy"`, column-wise.

    Args:
        pattern: Text with columns in braces, with `[n]` for only their n-th character.

    Raises:
        DataError: A cell used by the pattern is missing.
    """
    import pandas as pd

    result: Any = pd.Series("", index=table.index, dtype=object)
    for literal, place, _, _ in Formatter().parse(pattern):
        result = result + literal
        if place is not None:
            column, _, index = place.removesuffix("]").partition("[")
            if table[column].isna().any():
                raise DataError(f"Column {column} of file names has empty cells.", hint="Get the raw data again.")
            cells = table[column].astype(str)
            result = result + (cells.str[int(index)] if index else cells).astype(object)
    return list(result)
