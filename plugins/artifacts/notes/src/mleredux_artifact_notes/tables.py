"""Tables of a task's public data as text, read and written in their own format: CSV or Parquet."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from random import Random
from typing import IO, Any

KINDS = (".csv", ".parquet")
_TRAINING = re.compile(r"(?:^|[^a-z])train", re.IGNORECASE)
_MAX_BYTES = 2 << 30
_DECIMAL = re.compile(r"-?\d+\.\d+")
_CELL = re.compile(r'(?:^|,)("(?:[^"]|"")*"|[^,]*)')
csv.field_size_limit(1 << 24)


class NotPermutable(Exception):
    """The reason why the ids of a task's test rows cannot be exchanged, as one sentence."""


@dataclass
class Table:
    """A table.

    Attributes:
        header: Names of the columns.
        rows: The cells as text.
        typed: The table with types, if its format has them.
        records: Otherwise, the text of the header and of each row, which preserves quotes and line ends.
    """

    header: list[str]
    rows: list[list[str]]
    typed: Any = None
    records: list[str] = field(default_factory=list)

    def keys(self, places: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the cells of some columns, by row."""
        return [tuple(row[place] for place in places) for row in self.rows]

    def cells(self, name: str) -> list[str]:
        """Return the cells of a column.

        Raises:
            ValueError: The column does not exist.
        """
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def write(self, path: Path, order: Sequence[int], changed: Mapping[int, Sequence[str]]) -> None:
        """Write the rows in a given order.

        Args:
            path: The target, with the suffix of its format.
            order: Indices of rows.
            changed: New cells by column index, in the original order of the rows.

        Raises:
            NotPermutable: The cells do not fit the column's type.
        """
        if self.typed is None:
            head, *records = (record.rstrip("\r\n") for record in self.records)
            end = self.records[0][len(head) :] or "\n"
            rows = (_replaced(records[row], {place: cells[row] for place, cells in changed.items()}) for row in order)
            last = end if self.records[-1].endswith(end) else ""
            with path.open("w", encoding="utf-8", newline="") as file:
                file.write(end.join((head, *rows)) + last)
            return
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        arrow = self.typed
        for place, cells in changed.items():
            kind = arrow.schema.field(place)
            old = arrow.column(place).to_pylist()
            new = [None if before is None else cell for before, cell in zip(old, cells, strict=True)]
            try:
                arrow = arrow.set_column(place, kind, pyarrow.array(new, pyarrow.string()).cast(kind.type))
            except (ValueError, NotImplementedError):
                raise NotPermutable(f"Column {kind.name!r} of {path.name} can't be rewritten as {kind.type}.") from None
        parquet.write_table(arrow.take(pyarrow.array(list(order))), path)


def is_training(path: Path) -> bool:
    """Return whether a path in the public data is named as training data."""
    return any(_TRAINING.search(part) for part in path.parts)


def perturbed(cells: Sequence[str], random: Random) -> Sequence[str]:
    """Change decimal numbers by a thousandth of their range, but at least in their last digit; other columns are
    unchanged."""
    known = [cell for cell in cells if cell]
    if not all(map(_DECIMAL.fullmatch, known)) or 4 * len({*known}) <= len(known):
        return cells
    numbers = sorted(map(float, known))
    if all(map(float.is_integer, numbers)):
        return cells

    step = max(10.0 ** -max(len(cell.partition(".")[2]) for cell in known), (numbers[-1] - numbers[0]) / 1000)

    def near(cell: str) -> str:
        moved = min(max(float(cell) + random.choice((-step, step)), numbers[0]), numbers[-1])
        return f"{moved:.{max(len(cell.partition('.')[2]), math.ceil(-math.log10(step)))}f}"

    return [cell and near(cell) for cell in cells]


def read_table(path: Path) -> Table:
    """Read a table.

    Raises:
        NotPermutable: The file is not a table, or is too large.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise NotPermutable(f"{path.name} is too large to be rewritten.")
        if path.suffix == ".parquet":
            return _read_parquet(path)
        with path.open(encoding="utf-8", newline="") as file:
            rows, records = map(list, zip(*_records(file), strict=True))
    except (OSError, ValueError, csv.Error):
        raise NotPermutable(f"{path.name} is not a table with a header.") from None
    header = [rows[0][0].removeprefix("\ufeff"), *rows[0][1:]]
    if any(len(row) != len(header) for row in rows):
        raise NotPermutable(f"{path.name} has rows of different lengths.")
    return Table(header, rows[1:], records=records)


def _records(file: IO[str]) -> Iterator[tuple[list[str], str]]:
    """Yield the nonempty rows, each with its text."""
    read: list[str] = []

    def lines() -> Iterator[str]:
        for line in file:
            read.append(line)
            yield line

    for row in csv.reader(lines()):
        if row:
            yield row, "".join(read)
        read.clear()


def _replaced(record: str, cells: Mapping[int, str]) -> str:
    """Replace cells in the text of a row, keeping quotes."""
    texts = _CELL.findall(record) if cells else [record]
    for place, cell in cells.items():
        quoted = texts[place].startswith('"') or any(character in cell for character in ',"\r\n')
        texts[place] = '"{}"'.format(cell.replace('"', '""')) if quoted else cell
    return ",".join(texts)


def _read_parquet(path: Path) -> Table:
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise NotPermutable(f"{path.name} can't be read because pyarrow is not installed.") from None
    arrow = parquet.read_table(path)
    columns = [["" if cell is None else str(cell) for cell in column.to_pylist()] for column in arrow.columns]
    return Table(list(arrow.column_names), [list(row) for row in zip(*columns, strict=True)], arrow)
