"""Find and read tables among the prepared files of a competition."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

from mleredux.errors import DataError

from mleredux_techniques._kit.data.dataset import Frame

MAX_ROWS = 1_000_000
"""Maximum number of rows of a table that questions and answers use."""
ENDINGS = (".csv", ".tsv", ".parquet", ".jsonl", ".json", ".csv.gz", ".csv.zip", ".tsv.gz")
MISSING = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "None", "n/a", "nan", "null"}
)
"""Texts that pandas.read_csv treats as missing; they denote missing values in all formats."""
_ENTRIES = 20_000
_JSON_BYTES = 1 << 29


def find_tables(folder: Path) -> list[Path]:
    """Return files that may be tables, from the folder and its subfolders; likely training tables come first."""
    paths = _entries(folder)
    paths += [path for below in paths if below.is_dir() for path in _entries(below)]
    tables = [path for path in paths if path.is_file() and path.name.lower().endswith(ENDINGS)]
    return sorted(tables, key=lambda path: (len(path.relative_to(folder).parts), stem(path) != "train", str(path)))


def _entries(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return [Path(entry.path) for entry in itertools.islice(entries, _ENTRIES)]


def stem(path: Path) -> str:
    """Return the name without its extensions, in lower case."""
    name = path.name.lower()
    return next((name[: -len(ending)] for ending in sorted(ENDINGS, key=len)[::-1] if name.endswith(ending)), name)


def columns_of(path: Path) -> list[str]:
    """Return the columns of a table; empty if the file is not a table."""
    try:
        return [str(name) for name in read_table(path, rows=5).columns]
    except DataError:
        return []


def read_table(path: Path, rows: int = MAX_ROWS) -> Frame:
    """Read a table with the defaults of pandas; all formats share the missing-value texts of pandas.read_csv.

    Args:
        rows: Maximum number of rows to read.

    Raises:
        DataError: The file is not a readable table.
    """
    import pandas as pd
    from mleredux_tables import exact_numbers

    name = path.name.lower()
    try:
        if name.endswith(".parquet"):
            frame = pd.read_parquet(path).head(rows)
            for name in frame.columns[[dtype.kind == "O" for dtype in frame.dtypes]]:
                frame[name] = frame[name].map(_flat)
        elif name.endswith(".json"):
            if path.stat().st_size > _JSON_BYTES:
                raise ValueError("it is too large")
            frame = _frame(json.loads(path.read_bytes())).head(rows)
        elif name.endswith(".jsonl"):
            with path.open(encoding="utf-8") as lines:
                frame = _frame([json.loads(line) for line in itertools.islice(lines, rows) if line.strip()])
        else:
            separator = "\t" if ".tsv" in name else ","
            frame = pd.read_csv(path, sep=separator, nrows=rows, low_memory=False, **exact_numbers())
    except (OSError, ValueError, ImportError, UnicodeError) as error:
        raise DataError(f"Cannot read {path.name} as a table: {' '.join(str(error).split())}.") from error
    if not frame.columns.is_unique:
        raise DataError(f"{path.name} has duplicate column names.")
    frame.columns = [str(column) for column in frame.columns]
    return frame.reset_index(drop=True)


def _frame(content: Any) -> Frame:
    """Convert records to a table; nested values become JSON text."""
    import pandas as pd

    if not isinstance(content, list) or not all(isinstance(record, dict) for record in content):
        raise ValueError("it is not a list of records")
    return pd.DataFrame.from_records([{name: _flat(value) for name, value in record.items()} for record in content])


def _flat(value: Any) -> Any:
    """Return nested values as JSON text, and texts that denote missing values as None."""
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return None if isinstance(value, str) and value in MISSING else value
