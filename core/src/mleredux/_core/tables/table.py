"""Reading CSV files that may hold anything."""

from __future__ import annotations

import stat
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mleredux.errors import InvalidSubmission

if TYPE_CHECKING:
    import pandas as pd

LONGEST_HEADER = 1 << 20
"""Bytes. A longer first line is no header; pandas would take hours over a million columns."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Table:
    """A CSV file as NumPy arrays, whatever the version of pandas.

    Columns of text are object arrays of `str`, with NaN where a cell is missing.

    Args:
        frame: The table as pandas read it.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self.columns: tuple[str, ...] = tuple(str(name) for name in frame.columns)

    def __len__(self) -> int:
        return len(self._frame)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """A column, shape (rows,)."""
        if name not in self._arrays:
            array = self.series(name).to_numpy()
            if array.dtype.kind not in "biufO":
                array = array.astype(object)
            self._arrays[name] = array
        return self._arrays[name]

    def series(self, name: str) -> pd.Series[Any]:
        """A column as pandas holds it, which compares text faster than NumPy can."""
        return self._frame.iloc[:, self.columns.index(name)]

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Some of the rows, by their numbers."""
        return Table(self._frame.iloc[rows])

    def renamed(self, old: str, new: str) -> Table:
        """The same table with one column under another name."""
        return Table(self._frame.rename(columns={old: new}))

    def require(self, names: Sequence[str]) -> None:
        """Refuse the table where it lacks one of these columns.

        Raises:
            InvalidSubmission: A column is missing.
        """
        missing = [name for name in names if name not in self]
        if missing:
            some = ", ".join(repr(name) for name in missing[:5]) + (", …" if len(missing) > 5 else "")
            noun = "column" if len(missing) == 1 else "columns"
            raise InvalidSubmission(f"The submission lacks the {noun} {some}; name the columns as the sample does.")


def read_table(path: Path) -> Table:
    """Read a submission.

    Raises:
        InvalidSubmission: It is no regular file, or no CSV in UTF-8.
    """
    import pandas as pd

    _look(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = pd.read_csv(path, low_memory=False, compression=None, **_exact_numbers())
    except UnicodeDecodeError:
        raise InvalidSubmission("The submission is not encoded in UTF-8; write it as UTF-8 text.") from None
    except pd.errors.EmptyDataError:
        raise InvalidSubmission("The submission holds no table; write a header line and a line per row.") from None
    except MemoryError:
        raise InvalidSubmission("The submission is too large to be read; write the rows of the sample only.") from None
    except Exception as error:
        # pandas' parser raises many types; whatever it trips over is the file's fault.
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise InvalidSubmission(f"The submission can't be read as CSV ({reason}); write it like the sample.") from None
    return Table(frame)


def _exact_numbers() -> dict[str, Any]:
    """What makes pandas read each number as the nearest float64; since 3.1 it always does."""
    import pandas as pd

    exact_by_default = tuple(int(part) for part in pd.__version__.split(".")[:2]) >= (3, 1)
    return {} if exact_by_default else {"float_precision": "round_trip"}


def _look(path: Path) -> None:
    """Refuse what must not even be opened, or would take for ever."""
    try:
        status = path.lstat()
    except (OSError, ValueError):
        raise InvalidSubmission("There is no submission file; write it where the task says.") from None
    if stat.S_ISLNK(status.st_mode):
        raise InvalidSubmission("The submission is a link; write a regular file.")
    if stat.S_ISDIR(status.st_mode):
        raise InvalidSubmission("The submission is a folder; write a regular file.")
    if not stat.S_ISREG(status.st_mode):
        raise InvalidSubmission("The submission is not a regular file; write one.")
    if status.st_size == 0:
        raise InvalidSubmission("The submission is empty; write a header line and a line per row.")
    try:
        with path.open("rb") as file:
            start = file.read(LONGEST_HEADER)
    except OSError as error:
        raise InvalidSubmission(f"The submission can't be opened ({error.strerror}); check its permissions.") from None
    if start.startswith(_UTF16):
        raise InvalidSubmission("The submission is encoded in UTF-16; write it as UTF-8 text.")
    if b"\0" in start:
        raise InvalidSubmission("The submission is a binary file; write a CSV as UTF-8 text.")
    if len(start) == LONGEST_HEADER and b"\n" not in start and b"\r" not in start:
        raise InvalidSubmission("The first line of the submission is over a megabyte long; write it like the sample.")


def is_missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which cells of a column are missing, shape (rows,)."""
    missing: npt.NDArray[np.bool_]
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        return missing
    if values.dtype.kind == "O":
        import pandas as pd

        missing = pd.isna(values)
        return missing
    return np.zeros(len(values), dtype=bool)
