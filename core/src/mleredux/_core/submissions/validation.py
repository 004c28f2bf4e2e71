"""Whether a submission is well-formed, from its schema alone. The answers are never opened; no score is told."""

from __future__ import annotations

import csv
import errno
import io
import itertools
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from mleredux._core.models import Column, NotSubmitted, SubmissionSchema, Submitted, Unusable, Verdict
from mleredux._core.submissions.documents import find_model, parse_document
from mleredux.errors import InvalidSubmission

MAX_BYTES = 4 << 30
MAX_ROW = 1 << 24
_SHOWN = 40
_BLOCK_ROWS = 4096
_BOOLEAN = frozenset({"true", "false", "0", "1", "0.0", "1.0"})
_MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>", "#n/a"})


class _Malformed(Exception):
    """Carries the sentence."""


def open_regular(path: Path) -> BinaryIO:
    """Open a file an agent left, for reading, if it is a regular file and no link.

    Raises:
        OSError: It is not there, or is a link, a folder, a device; the message is a sentence's end.
    """
    return _open(str(path), None)


def open_below(root: Path, name: str) -> BinaryIO:
    """Open a file in a folder an agent writes, by its name there (`a/b.csv`), following no link on the way.

    Raises:
        OSError: As `open_regular`; also where a folder on the way is a link.
    """
    *folders, last = PurePosixPath(name).parts
    if name.startswith("/") or ".." in (*folders, last):
        raise OSError("lies outside the output folder")
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            try:
                below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            except FileNotFoundError:
                raise FileNotFoundError("does not exist") from None
            except OSError:
                raise OSError(f"lies in {folder!r}, which is no folder but a link or a file") from None
            os.close(here)
            here = below
        return _open(last, here)
    finally:
        os.close(here)


def _open(name: str, folder: int | None) -> BinaryIO:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        raise FileNotFoundError("does not exist") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError("is a link; write the file itself") from None
        raise OSError(f"can't be read ({error.strerror})") from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError("is a folder, not a file" if stat.S_ISDIR(mode) else "is not a regular file")


def submitted(path: Path | str) -> Submitted:
    """A file that may not be there, or be something else; the empty path is that of nothing."""
    try:
        open_regular(Path(path)).close()
    except OSError as error:
        return NotSubmitted() if isinstance(error, FileNotFoundError) or not str(path) else Unusable(problem=str(error))
    return Path(path)


def validate(schema: SubmissionSchema, path: Path) -> Verdict:
    """Check a submission file against its schema.

    Never raises for anything an agent may leave; a file of any size is read once, row by row, and no further than the
    first fault.
    """
    return _verdict(schema, lambda: open_regular(path))


def validate_below(schema: SubmissionSchema, root: Path) -> Verdict:
    """As `validate`, of the submission file in a folder an agent writes."""
    return _verdict(schema, lambda: open_below(root, schema.file))


def _verdict(schema: SubmissionSchema, opener: Callable[[], BinaryIO]) -> Verdict:
    expected = _expected_ids(schema)  # ours: what is wrong there is not the agent's
    try:
        with opener() as file:
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                raise _Malformed(f"{schema.file} is larger than {MAX_BYTES >> 30} GiB.")
            if schema.document is not None:
                parse_document(find_model(schema.document), file, schema.file)
            else:
                _check(schema, file, expected)
    except OSError as error:
        return Verdict(valid=False, message=f"{schema.file} {error.strerror or error}.")
    except (_Malformed, InvalidSubmission) as error:
        return Verdict(valid=False, message=str(error))
    return Verdict(valid=True, message=f"{schema.file} is well-formed.")


def _check(schema: SubmissionSchema, file: BinaryIO, expected: Set[tuple[str, ...]] | None) -> None:
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
    csv.field_size_limit(MAX_ROW)
    lines = _Lines(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), schema.file)
    try:
        _check_table(schema, lines.rows(), expected)
    except UnicodeDecodeError:
        raise _Malformed(f"{schema.file} is not UTF-8 text.") from None
    except csv.Error as error:
        raise _Malformed(f"{schema.file} is not a CSV file: {error}.") from None


class _Lines:
    """Lines of a text for a CSV reader; a row without end, or a file that grows for ever, is refused in time."""

    def __init__(self, text: io.TextIOWrapper, name: str) -> None:
        self._text, self._name = text, name
        self._row = self._total = 0

    def __iter__(self) -> Iterator[str]:
        while line := self._text.readline(MAX_ROW - self._row + 1):
            self._row += len(line)
            self._total += len(line)
            if self._row > MAX_ROW:
                raise _Malformed(f"{self._name} has a row longer than {MAX_ROW >> 20} million characters.")
            if self._total > MAX_BYTES:
                raise _Malformed(f"{self._name} is larger than {MAX_BYTES >> 30} GiB.")
            yield line

    def rows(self) -> Iterator[list[str]]:
        """The rows of the table."""
        for row in csv.reader(self, strict=True):
            self._row = 0
            yield row


def _check_table(schema: SubmissionSchema, rows: Iterator[list[str]], expected: Set[tuple[str, ...]] | None) -> None:
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
    seen: set[tuple[str, ...]] = set()
    count = 0
    first = 2
    while block := list(itertools.islice(rows, _BLOCK_ROWS)):
        fine = _cells_are_fine(block, len(header), positions)
        for number, row in enumerate(block, start=first):
            if not row:
                continue
            count += 1
            if schema.rows is not None and count > schema.rows:
                raise _Malformed(f"There are more than the expected {schema.rows:,} rows.")
            if not fine:
                if len(row) != len(header):
                    raise _Malformed(f"Line {number} has {len(row)} cells, the header has {len(header)}.")
                for column, position in positions:
                    _check_cell(column, row[position], number)
            if expected is not None:
                key = _key(row[position] for position in id_positions)
                if key in seen:
                    raise _Malformed(f"The id in line {number} occurs twice.")
                if key not in expected:
                    raise _Malformed(f"The id in line {number} is not among the ids of the sample submission.")
                seen.add(key)
        first += len(block)
    if schema.rows is not None and count != schema.rows:
        raise _Malformed(f"There are {count:,} rows, expected are {schema.rows:,}.")


def _cells_are_fine(block: list[list[str]], width: int, positions: list[tuple[Column, int]]) -> bool:
    """Whether a block of rows holds nothing to object to, cell by cell; a quick look at whole columns.

    False also where a closer look is needed (empty lines, missing values where they are allowed).
    """
    if any(len(row) != width for row in block):
        return False
    for column, position in positions:
        cells = [row[position] for row in block]
        if column.type == "boolean":
            fine = _BOOLEAN.issuperset(cell.strip().lower() for cell in cells)
        elif column.type == "string":
            fine = True
        elif column.role == "id":
            fine = _MISSING.isdisjoint(cell.strip().lower() for cell in cells)
        else:
            fine = _are_numbers(cells, whole=column.type == "integer")
        if not fine:
            return False
    return True


def _are_numbers(cells: list[str], *, whole: bool) -> bool:
    together = "".join(cells)
    if "_" in together or not together.isascii():
        return False
    try:
        values = list(map(float, cells))
    except ValueError:
        return False
    return all(map(math.isfinite, values)) and (not whole or all(value.is_integer() for value in values))


def _check_cell(column: Column, cell: str, number: int) -> None:
    text = cell.strip()
    if text.lower() in _MISSING:
        if column.type != "string" and not column.nullable:
            raise _Malformed(f"Column {column.name!r} has a missing value in line {number}.")
        return
    if column.type == "boolean" and text.lower() not in _BOOLEAN:
        raise _Malformed(f"Column {column.name!r} must be True or False; line {number} is neither.")
    if column.type in ("number", "integer") and column.role == "target":
        value = as_number(text)
        if value is None:
            raise _Malformed(f"Column {column.name!r} must be a number; line {number} is not.")
        if not math.isfinite(value):
            raise _Malformed(f"Column {column.name!r} is infinite or no number in line {number}.")
        if column.type == "integer" and not value.is_integer():
            raise _Malformed(f"Column {column.name!r} must be a whole number; line {number} is not.")


def as_number(text: str) -> float | None:
    """A cell as a number; None where CSV readers take it for a text, which is less than what Python's `float` takes."""
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


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
    shown = ", ".join(repr(name if len(name) <= _SHOWN else name[:_SHOWN] + "…") for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown
