"""Read CSV files with untrusted content."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt
from mleredux.errors import InvalidSubmission
from mleredux.models.schema import other_encoding, refuse_alike
from mleredux.plugin.files import open_regular

if TYPE_CHECKING:
    import pandas as pd

_MAX_ROW = 1 << 24
"""Maximum length of the header and the first row in bytes."""
_MAX_COLUMNS = 1 << 14
"""Maximum number of columns; pandas would take hours to read a million of them."""
_LONGER = "Rows have more cells than the header; name each column, and end no line with a comma."
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


class Table:
    """A CSV file as NumPy arrays, the same for all versions of pandas.

    Columns of text are object arrays of `str`, with NaN where a cell is missing.

    Args:
        frame: The table as read by pandas, or its columns: building a frame takes longer than most metrics.
        repeated: Names that occur twice in the header, to which pandas appends numbers.
    """

    def __init__(self, frame: pd.DataFrame | dict[str, pd.Series[Any]], repeated: frozenset[str] = frozenset()) -> None:
        self._source, self._repeated = frame, repeated
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self.columns: tuple[str, ...] = tuple(str(name) for name in frame)

    @cached_property
    def _frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self._source)

    def __len__(self) -> int:
        return len(next(iter(self._source.values())) if isinstance(self._source, dict) else self._source)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return a column, shape (rows,)."""
        if name not in self._arrays:
            array = self.series(name).to_numpy()
            if array.dtype.kind not in "biufO":
                array = array.astype(object)
            self._arrays[name] = array
        return self._arrays[name]

    def series(self, name: str) -> pd.Series[Any]:
        """Return a column as stored by pandas, which compares text faster than NumPy."""
        if isinstance(self._source, dict):
            return self._source[name]
        return self._source.iloc[:, self.columns.index(name)]

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Return some of the rows, by their numbers."""
        return Table(self._frame.iloc[rows])

    def renamed(self, old: str, new: str) -> Table:
        """Return the same table with one column renamed."""
        return Table(self._frame.rename(columns={old: new}))

    def as_text(self, name: str) -> Table:
        """Return the same table with one column as text."""
        return Table(self._frame.astype({name: object}))

    def write(self, path: Path, added: Mapping[str, npt.NDArray[Any]], rows: npt.NDArray[Any]) -> None:
        """Write some of the rows as CSV, with additional columns of one cell per row of the table."""
        self._frame.assign(**added).iloc[rows].to_csv(path, index=False)

    def require(self, names: Sequence[str]) -> None:
        """Reject the table if one of these columns is missing, or occurs twice.

        Raises:
            InvalidSubmission: A column is missing, or occurs twice.
        """
        if twice := [name for name in names if name in self._repeated]:
            raise InvalidSubmission(f"The submission has several columns named {twice[0]!r}; keep one of them.")
        missing = [name for name in names if name not in self]
        if missing:
            some = ", ".join(repr(name) for name in missing[:5]) + (", …" if len(missing) > 5 else "")
            noun = "column" if len(missing) == 1 else "columns"
            raise InvalidSubmission(f"The submission lacks the {noun} {some}; name the columns as the sample does.")
        refuse_alike(self.columns, names)


def read_table(source: Path | BinaryIO) -> Table:
    """Read a submission: a file's path, or the file opened in binary mode.

    Raises:
        InvalidSubmission: The file is not a regular file, or not a CSV in UTF-8.
    """
    if isinstance(source, Path):
        try:
            with open_regular(source) as file:
                return read_table(file)
        except FileNotFoundError:
            raise InvalidSubmission("There is no submission file; write it to the path in the task.") from None
        except OSError as error:
            raise InvalidSubmission(f"The submission {error.strerror or error}.") from None
    import pandas as pd

    start = _inspect(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = pd.read_csv(source, low_memory=False, compression=None, **exact_numbers())
    except UnicodeDecodeError:
        raise InvalidSubmission("The submission is not encoded in UTF-8; write it as UTF-8 text.") from None
    except pd.errors.EmptyDataError:
        raise InvalidSubmission("The submission contains no table; write a header line and a line per row.") from None
    except MemoryError:
        raise InvalidSubmission("The submission is too large to be read; write only the rows of the sample.") from None
    except Exception as error:
        # pandas' parser raises many types of exceptions, all of which are the file's fault.
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise InvalidSubmission(f"The submission can't be read as CSV ({reason}); write it like the sample.") from None
    if not isinstance(frame.index, pd.RangeIndex):
        raise InvalidSubmission(_LONGER)
    return Table(_with_huge_numbers_as_text(frame, source), _repeated(frame, start))


def _check_first_rows(start: bytes, rest: bytes) -> None:
    """Reject tables with endless rows, very many columns, or rows whose first cells pandas would read as row names.

    Args:
        start: The start of the file.
        rest: The rest of the file, or a part of it.
    """
    csv.field_size_limit(_MAX_ROW)
    rows = filter(None, csv.reader(io.StringIO(start.decode("utf-8-sig", "replace"), newline="")))
    header, first, after = (next(rows, []) for _ in range(3))
    if rest and not after:
        raise InvalidSubmission("The first row of the submission is over 16 MiB long; write it like the sample.")
    if len(header) > _MAX_COLUMNS:
        raise InvalidSubmission(f"The submission has {len(header):,} columns; name the columns as the sample does.")
    if len(first) > len(header):
        raise InvalidSubmission(_LONGER)


def _repeated(frame: pd.DataFrame, start: bytes) -> frozenset[str]:
    """Return the names that occur twice in the header at the start of a file."""
    import pandas as pd

    if not any(re.search(r"\.\d+$", str(name)) for name in frame.columns):
        return frozenset()
    text = io.StringIO(start.decode("utf-8-sig", "replace"))
    header = pd.read_csv(text, header=None, nrows=1, dtype=object, keep_default_na=False).iloc[0]
    return frozenset(name for name, number in Counter(header).items() if number > 1)


def _with_huge_numbers_as_text(frame: pd.DataFrame, source: BinaryIO) -> pd.DataFrame:
    """Return columns with numbers beyond the range of their type as text, as all versions of pandas before 3 do."""
    import pandas as pd

    if huge := [place for place, kind in enumerate(frame.dtypes) if _may_be_huge(frame.iloc[:, place], kind.kind)]:
        source.seek(0)
        texts = pd.read_csv(source, usecols=huge, dtype=object, low_memory=False, compression=None)
        for place, (_, column) in zip(huge, texts.items(), strict=True):
            infinite = frame.dtypes.iloc[place].kind == "f"
            if not infinite or column.str.contains(r"\d", na=False)[np.isinf(frame.iloc[:, place])].any():
                frame.isetitem(place, column.astype(pd.Series([""]).dtype).array)
    return frame


def _may_be_huge(column: pd.Series[Any], kind: str) -> bool:
    """Return whether a column has infinite numbers, or starts with integers one of which exceeds 64 bits."""
    if kind == "f":
        return bool(np.isinf(column).any())
    for cell in column if kind == "O" else ():
        number = _INTEGER.fullmatch(str(cell))
        if number and (len(number[0]) > 99 or not -(2**63) <= int(number[0]) < 2**64):
            return True
        if not number and cell == cell and cell != "":  # pandas 3.1 reads missing cells after such an integer as ""
            return False
    return False


def read_header(path: Path) -> tuple[str, ...]:
    """Return the column names of a table that is known to be valid."""
    import pandas as pd

    return tuple(str(name) for name in pd.read_csv(path, nrows=0, compression=None).columns)


def exact_numbers() -> dict[str, Any]:
    """Return the options with which pandas reads each number as the nearest float64; since 3.1 this is the default."""
    import pandas as pd

    exact_by_default = tuple(int(part) for part in pd.__version__.split(".")[:2]) >= (3, 1)
    return {} if exact_by_default else {"float_precision": "round_trip"}


def _inspect(file: BinaryIO) -> bytes:
    """Reject files that would take forever to read; return the start of the file."""
    start, rest = file.read(_MAX_ROW), file.read(1)
    file.seek(0)
    if not start:
        raise InvalidSubmission("The submission is empty; write a header line and a line per row.")
    if encoding := other_encoding(start):
        raise InvalidSubmission(f"The submission is encoded in {encoding}; write it as UTF-8 text.")
    if b"\0" in start:
        raise InvalidSubmission("The submission is a binary file; write a CSV as UTF-8 text.")
    _check_first_rows(start, rest)
    return start


def is_missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which cells of a column are missing, shape (rows,)."""
    missing: npt.NDArray[np.bool_] = np.zeros(len(values), dtype=bool)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    elif values.dtype.kind == "O":
        import pandas as pd

        missing = pd.isna(values)
    return missing
