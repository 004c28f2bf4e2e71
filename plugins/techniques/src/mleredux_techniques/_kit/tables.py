"""Finding and reading tables among the prepared files of a competition."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 1_000_000
"""Of a longer table, the first rows are the table: for the questions as for their answers."""
ENDINGS = (".csv", ".tsv", ".parquet", ".jsonl", ".json", ".csv.gz", ".csv.zip", ".tsv.gz")
MISSING = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "None", "n/a", "nan", "null"}
)
"""Texts that pandas.read_csv takes for missing; they are so in every format."""
_ENTRIES = 20_000
_JSON_BYTES = 1 << 29


def find_tables(folder: Path) -> list[Path]:
    """Files that may be tables, in the folder and the folders in it, those named like training tables first."""
    with os.scandir(folder) as entries:
        found = sorted(itertools.islice((entry.path for entry in entries), _ENTRIES))
    paths = [Path(path) for path in found]
    for below in [path for path in paths if path.is_dir()]:
        with os.scandir(below) as entries:
            paths += sorted(Path(entry.path) for entry in itertools.islice(entries, _ENTRIES) if entry.is_file())
    tables = [path for path in paths if path.is_file() and path.name.lower().endswith(ENDINGS)]
    return sorted(tables, key=lambda path: (len(path.relative_to(folder).parts), stem(path) != "train", str(path)))


def stem(path: Path) -> str:
    """The name without its endings, in lower case."""
    name = path.name.lower()
    return next((name[: -len(ending)] for ending in sorted(ENDINGS, key=len)[::-1] if name.endswith(ending)), name)


def columns_of(path: Path) -> list[str]:
    """The columns of a table; none where it is none."""
    try:
        return [str(name) for name in read_table(path, rows=5).columns]
    except DataError:
        return []


def read_table(path: Path, rows: int = MAX_ROWS) -> pd.DataFrame:
    """A table as pandas reads it with its defaults; what pandas.read_csv takes for missing is so in every format.

    Args:
        rows: How many rows are read at most, from the first.

    Raises:
        DataError: It is no table that can be read.
    """
    import pandas as pd

    name = path.name.lower()
    try:
        if name.endswith(".parquet"):
            frame = _unmarked(pd.read_parquet(path).head(rows))
        elif name.endswith(".json"):
            frame = _records(path).head(rows)
        elif name.endswith(".jsonl"):
            with path.open(encoding="utf-8") as lines:
                frame = _frame([json.loads(line) for line in itertools.islice(lines, rows) if line.strip()])
        else:
            separator = "\t" if ".tsv" in name else ","
            frame = pd.read_csv(path, sep=separator, nrows=rows, low_memory=False, **exact())
    except (OSError, ValueError, ImportError, UnicodeError) as error:
        raise DataError(f"{path.name} can't be read as a table: {' '.join(str(error).split())}.") from error
    if not frame.columns.is_unique:
        raise DataError(f"{path.name} has two columns of one name.")
    frame.columns = [str(column) for column in frame.columns]
    return frame.reset_index(drop=True)


def exact() -> dict[str, Any]:
    """Options of pandas.read_csv that read each number as it was written; from pandas 3.1 on, it does so by itself."""
    import pandas as pd

    major, minor = (int(part) for part in pd.__version__.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _records(path: Path) -> pd.DataFrame:
    """A list of JSON objects."""
    if path.stat().st_size > _JSON_BYTES:
        raise ValueError("it is too large")
    return _frame(json.loads(path.read_bytes()))


def _frame(content: Any) -> pd.DataFrame:
    """Records as a table; what nests in them is kept as JSON text."""
    import pandas as pd

    if not isinstance(content, list) or not all(isinstance(record, dict) for record in content):
        raise ValueError("it is no list of records")
    return pd.DataFrame.from_records([{name: _flat(value) for name, value in record.items()} for record in content])


def _flat(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return None if isinstance(value, str) and value in MISSING else value


def _unmarked(frame: pd.DataFrame) -> pd.DataFrame:
    """Texts that stand for missing values, as missing values."""
    import numpy as np

    for name in frame.columns[[dtype.kind == "O" for dtype in frame.dtypes]]:
        marks = [isinstance(value, str) and value in MISSING for value in frame[name]]
        frame[name] = frame[name].mask(np.array(marks, dtype=bool))
    return frame
