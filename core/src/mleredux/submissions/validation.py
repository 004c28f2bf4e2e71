"""Whether a submission is well-formed, from its schema alone. The answers are never opened; no score is told."""

from __future__ import annotations

import csv
import io
import math
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from mleredux.models import Column, SubmissionSchema, Verdict

MAX_BYTES = 4 << 30
MAX_LINE = 1 << 26
_BOOLEAN = frozenset({"true", "false", "0", "1", "0.0", "1.0"})
_MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>", "#n/a"})


class _Malformed(Exception):
    """Carries the sentence."""


def open_regular(path: Path) -> BinaryIO:
    """Open a file an agent left, for reading, if it is a regular file and no link.

    Raises:
        OSError: It is not there, or is a link, a folder, a device; the message is a sentence's end.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise FileNotFoundError("does not exist") from None
    except OSError as error:
        if path.is_symlink():
            raise OSError("is a link; write the file itself") from None
        raise OSError(f"can't be read ({error.strerror})") from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError("is a folder, not a file" if stat.S_ISDIR(mode) else "is not a regular file")


def validate(schema: SubmissionSchema, path: Path) -> Verdict:
    """Check a submission file against its schema.

    Never raises for anything an agent may leave; a file of any size is read once, row by row, and no further than the
    first fault.
    """
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                raise _Malformed(f"{schema.file} is larger than {MAX_BYTES >> 30} GiB.")
            _check(schema, file)
    except OSError as error:
        return Verdict(valid=False, message=f"{schema.file} {error}.")
    except _Malformed as error:
        return Verdict(valid=False, message=str(error))
    return Verdict(valid=True, message=f"{schema.file} is well-formed.")


def _check(schema: SubmissionSchema, file: BinaryIO) -> None:
    start = file.read(4096)
    file.seek(0)
    if not start.strip():
        raise _Malformed(f"{schema.file} is empty.")
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise _Malformed(f"{schema.file} is UTF-16; write it as UTF-8.")
    if b"\0" in start:
        raise _Malformed(f"{schema.file} is not a CSV text file: it holds NUL bytes.")
    if not schema.columns:
        return
    csv.field_size_limit(MAX_LINE)
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        _check_table(schema, csv.reader(_lines(text, schema.file), strict=True))
    except UnicodeDecodeError:
        raise _Malformed(f"{schema.file} is not UTF-8 text.") from None
    except csv.Error as error:
        raise _Malformed(f"{schema.file} is not a CSV file: {error}.") from None


def _lines(text: io.TextIOWrapper, name: str) -> Iterator[str]:
    """Lines of a text; one without end is refused before it fills the memory."""
    while line := text.readline(MAX_LINE):
        if len(line) == MAX_LINE:
            raise _Malformed(f"{name} has a line longer than {MAX_LINE >> 20} million characters.")
        yield line


def _check_table(schema: SubmissionSchema, rows: Iterator[list[str]]) -> None:
    header = next(rows, [])
    names = [column.name for column in schema.columns]
    missing = [name for name in names if name not in header]
    if missing:
        raise _Malformed(f"Columns are missing: {_some(missing)}; expected are {_some(names)}.")
    if len(set(header)) != len(header):
        raise _Malformed("A column name occurs twice.")
    extra = [name for name in header if name not in names]
    if extra and not schema.extra_columns:
        raise _Malformed(f"There are columns that do not belong here: {_some(extra)}.")
    positions = [(column, header.index(column.name)) for column in schema.columns]
    id_positions = [position for column, position in positions if column.role == "id"]
    expected = _expected_ids(schema)
    seen: set[tuple[str, ...]] = set()
    count = 0
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        count += 1
        if len(row) != len(header):
            raise _Malformed(f"Line {number} has {len(row)} cells, the header has {len(header)}.")
        if schema.rows is not None and count > schema.rows:
            raise _Malformed(f"There are more than the expected {schema.rows:,} rows.")
        for column, position in positions:
            _check_cell(column, row[position], number)
        if expected is not None:
            key = _key(row[position] for position in id_positions)
            if key in seen:
                raise _Malformed(f"The id in line {number} occurs twice.")
            if key not in expected:
                raise _Malformed(f"The id in line {number} is not among the ids of the sample submission.")
            seen.add(key)
    if schema.rows is not None and count != schema.rows:
        raise _Malformed(f"There are {count:,} rows, expected are {schema.rows:,}.")


def _check_cell(column: Column, cell: str, number: int) -> None:
    text = cell.strip()
    if text.lower() in _MISSING:
        if column.type != "string" and not column.nullable:
            raise _Malformed(f"Column {column.name!r} has a missing value in line {number}.")
        return
    if column.type == "boolean" and text.lower() not in _BOOLEAN:
        raise _Malformed(f"Column {column.name!r} must be True or False; line {number} is neither.")
    if column.type in ("number", "integer") and column.role == "target":
        try:
            value = float(text)
        except ValueError:
            raise _Malformed(f"Column {column.name!r} must be a number; line {number} is not.") from None
        if not math.isfinite(value):
            raise _Malformed(f"Column {column.name!r} is infinite in line {number}.")


def _expected_ids(schema: SubmissionSchema) -> set[tuple[str, ...]] | None:
    if schema.ids is None:
        return None
    with schema.ids.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        return {_key(row) for row in rows}


def _key(cells: Iterable[str]) -> tuple[str, ...]:
    """An id, written in one way: `7`, `7.0` and ` 7` are the same."""
    return tuple(_plain(cell.strip()) for cell in cells)


def _plain(cell: str) -> str:
    return cell[:-2] if cell.endswith(".0") and cell[:-2].isdigit() else cell


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown
