"""Validate submissions using only their schema. The answers are never opened, and no score is revealed."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO

from mleredux._core.submissions.files import MAX_BYTES, open_below, open_regular
from mleredux.errors import InvalidSubmission, NotFound
from mleredux.models import Column, FormInput, Grader, SubmissionSchema, Task, Verdict
from mleredux.models.formats import counted
from mleredux.models.schema import other_encoding, refuse_alike

MAX_ROW = 1 << 24
CHECK_SECONDS = 120.0
CHECK_MEMORY_MB = 4096
_SMALL = 16 << 20
_SHOWN = 40
_BLOCK_ROWS = 4096
_BOOLEAN = frozenset({"true", "false", "0", "1", "0.0", "1.0"})
_MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>", "#n/a"})


class _Malformed(InvalidSubmission):
    """Carries an error message."""

    seconds = 0.0
    """As in `Verdict`."""


def validate(schema: SubmissionSchema, path: Path, *, task: Task | None = None, seconds: float = math.inf) -> Verdict:
    """Check a submission file by its schema: with the task's grader if it has a check, else columns, ids and types.

    Never raises because of an agent's files. Graders, which read tables into memory, run in a child process with
    limits; large files are also checked in one.

    Args:
        schema: The schema of the submission.
        path: The submission file.
        task: If given, check in this process, without limits, with the grader of this task.
        seconds: Maximum seconds for which a program may be executed, if less than the task allows.
    """
    return _verdict(schema, lambda: open_regular(path), task, seconds)


def validate_below(schema: SubmissionSchema, root: Path, *, seconds: float = math.inf) -> Verdict:
    """Check the submission file in an agent's folder, as `validate` does."""
    return _verdict(schema, lambda: open_below(root, schema.file), None, seconds)


def _verdict(schema: SubmissionSchema, opener: Callable[[], BinaryIO], task: Task | None, seconds: float) -> Verdict:
    spent = 0.0
    try:
        with opener() as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_BYTES:
                raise _Malformed(f"{schema.file} is larger than {MAX_BYTES >> 30} GiB.")
            if schema.document is not None:
                from mleredux._core.submissions.documents import find_model, parse_document

                parse_document(find_model(schema.document), file, schema.file)
            elif schema.public is not None or (task is None and (schema.reference is not None or size > _SMALL)):
                spent = _check_apart(schema, file, seconds)
            else:
                check(schema, file, task)
    except OSError as error:
        return Verdict(valid=False, message=f"{schema.file} {error.strerror or error}.")
    except InvalidSubmission as error:
        return Verdict(valid=False, message=str(error), seconds=getattr(error, "seconds", 0.0))
    return Verdict(valid=True, message=f"{schema.file} is well-formed.", seconds=spent)


def _check_apart(schema: SubmissionSchema, file: BinaryIO, most: float) -> float:
    """Check an open file in a child process.

    Args:
        most: Maximum seconds for which a program may be executed.

    Returns:
        The seconds for which it was executed.

    Raises:
        _Malformed: The submission is not well-formed, or could not be checked within the limits.
    """
    from mleredux._core import forkserver
    from mleredux._core.plugins import current

    catalogue = current()
    executed = catalogue.task(schema.task).submission.execution if schema.public is not None else None
    executing = min(executed.seconds, most) if executed is not None else 0.0
    seconds = CHECK_SECONDS + executing
    request = {
        "schema": schema.model_dump(mode="json"),
        **forkserver.same_plugins(catalogue),
        "memory_mb": CHECK_MEMORY_MB,
        "seconds": executing,
    }
    with tempfile.TemporaryFile() as answer, Path(os.devnull).open("wb") as errors:
        child = forkserver.start(
            "mleredux._core.submissions.children:validate",
            request,
            folder="/",
            errors=errors.fileno(),
            files=[file.fileno(), answer.fileno()],
            tables=schema.reference is not None,
        )
        with closing(child):
            in_time = child.wait(seconds)
        answer.seek(0)
        output = answer.read()
    spent = executing
    if not in_time:
        fault = f"{schema.file} could not be checked within {seconds:.0f} seconds."
    else:
        try:
            fault, spent = json.loads(output)
        except ValueError:
            fault = f"{schema.file} could not be checked within {CHECK_MEMORY_MB >> 10} GiB of memory."
    if fault is not None:
        malformed = _Malformed(fault)
        malformed.seconds = spent
        raise malformed
    return spent


def check(schema: SubmissionSchema, file: BinaryIO, task: Task | None = None) -> None:
    """Check an open submission in this process.

    Args:
        schema: The schema of the submission.
        file: The open submission.
        task: The task of the schema, if its grader is to be used.

    Raises:
        InvalidSubmission: The submission is not well-formed.
        MlereduxError: The task itself is faulty.
    """
    grader = grader_of(task) if task is not None and schema.reference is not None else None
    if grader is not None and grader.check is not None and schema.reference is not None and task is not None:
        grader.check(FormInput(file, schema.reference, task))
        return
    start = file.read(4096)
    file.seek(0)
    if not start.strip():
        raise _Malformed(f"{schema.file} is empty.")
    if encoding := other_encoding(start):
        raise _Malformed(f"{schema.file} is {encoding}; write it as UTF-8.")
    if b"\0" in start:
        raise _Malformed(f"{schema.file} is not a CSV text file: it contains NUL bytes.")
    if not schema.columns:
        return
    csv.field_size_limit(MAX_ROW)
    lines = _Lines(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), schema.file)
    try:
        _check_table(schema, lines.rows(), _expected_ids(schema))
    except UnicodeDecodeError:
        raise _Malformed(f"{schema.file} is not UTF-8 text.") from None
    except csv.Error as error:
        raise _Malformed(f"{schema.file} is not a CSV file: {error}.") from None


class _Lines:
    """Lines of text for a CSV reader; rejects endless rows and endlessly growing files."""

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
        """Yield the rows of the table."""
        for row in csv.reader(self, strict=True):
            self._row = 0
            yield row


def _check_table(
    schema: SubmissionSchema, rows: Iterator[list[str]], expected: Mapping[tuple[str, ...], int] | None
) -> None:
    header = next(rows, [])
    names = [column.name for column in schema.columns]
    if missing := [name for name in names if name not in header]:
        raise _Malformed(f"Missing columns: {_some(missing)}; expected columns: {_some(names)}.")
    if len(set(header)) != len(header):
        raise _Malformed("A column name occurs twice.")
    refuse_alike(header, names)
    extra = [name for name in header if name not in names]
    if extra and not schema.extra_columns:
        raise _Malformed(f"Unexpected columns: {_some(extra)}.")
    positions = [(column, header.index(column.name)) for column in schema.columns]
    id_positions = [position for column, position in positions if column.role == "id"]
    seen: Counter[tuple[str, ...]] = Counter()
    count = 0
    first = 2
    while block := list(itertools.islice(rows, _BLOCK_ROWS)):
        fine = _cells_are_fine(block, len(header), positions)
        for number, row in enumerate(block, start=first):
            if not row:
                continue
            count += 1
            if schema.rows is not None and count > schema.rows:
                raise _Malformed(f"Expected {counted(schema.rows, 'row')}, but there are more.")
            if not fine:
                if len(row) != len(header):
                    raise _Malformed(f"Line {number} has {len(row)} cells; the header has {len(header)}.")
                for column, position in positions:
                    _check_cell(column, row[position], number)
            if expected is not None:
                key = _key(row[position] for position in id_positions)
                if key not in expected:
                    raise _Malformed(f"The id in line {number} is not among the ids of the sample submission.")
                seen[key] += 1
                if seen[key] > expected[key]:
                    often = "twice" if expected[key] == 1 else "too often"
                    raise _Malformed(f"The id in line {number} occurs {often}.")
        first += len(block)
    if schema.rows is not None and count != schema.rows:
        raise _Malformed(f"Expected {counted(schema.rows, 'row')}, but there are {count:,}.")


def _cells_are_fine(block: list[list[str]], width: int, positions: list[tuple[Column, int]]) -> bool:
    """Return whether all cells of a block of rows are valid, with a quick check of whole columns.

    Also returns False if a detailed check is needed (empty lines, missing values that are allowed).
    """
    if any(len(row) != width for row in block):
        return False
    return all(_is_fine(column, [row[position] for row in block]) for column, position in positions)


def _is_fine(column: Column, cells: list[str]) -> bool:
    if column.type == "boolean":
        return _BOOLEAN.issuperset(cell.strip().lower() for cell in cells)
    if column.type == "string":
        return True
    if column.role == "id":
        return _MISSING.isdisjoint(cell.strip().lower() for cell in cells)
    together = "".join(cells)
    if "_" in together or not together.isascii():
        return False
    try:
        values = list(map(float, cells))
    except ValueError:
        return False
    return all(map(math.isfinite, values)) and (column.type != "integer" or all(map(float.is_integer, values)))


def _check_cell(column: Column, cell: str, number: int) -> None:
    text = cell.strip()
    if text.lower() in _MISSING:
        if column.type != "string" and not column.nullable:
            raise _Malformed(f"Column {column.name!r} has a missing value in line {number}.")
        return
    if column.type == "boolean" and text.lower() not in _BOOLEAN:
        raise _Malformed(f"Column {column.name!r} must be True or False; the value in line {number} is neither.")
    if column.type in ("number", "integer") and column.role == "target":
        value = as_number(text)
        if value is None:
            raise _Malformed(f"Column {column.name!r} must be a number; the value in line {number} is not.")
        if not math.isfinite(value):
            raise _Malformed(f"Column {column.name!r} must be a finite number; the value in line {number} is not.")
        if column.type == "integer" and not value.is_integer():
            raise _Malformed(f"Column {column.name!r} must be a whole number; the value in line {number} is not.")


def as_number(text: str) -> float | None:
    """Return a cell as a number; None if CSV readers treat it as text, even though Python's `float` may accept it."""
    with suppress(ValueError):
        return float(text) if "_" not in text and text.isascii() else None
    return None


def _expected_ids(schema: SubmissionSchema) -> Counter[tuple[str, ...]] | None:
    if schema.ids is None:
        return None
    with schema.ids.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        return Counter(map(_key, rows))


def _key(cells: Iterable[str]) -> tuple[str, ...]:
    """Return an id in normalized form: `7`, `7.0` and ` 7` are the same."""
    return tuple(cell[:-2] if cell.endswith(".0") and cell[:-2].isdigit() else cell for cell in map(str.strip, cells))


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name if len(name) <= _SHOWN else name[:_SHOWN] + "…") for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


def grader_of(task: Task) -> Grader | None:
    """Return the grader of a task; None if it is not installed."""
    from mleredux._core.plugins import current

    grader = task.metric.grader
    with suppress(NotFound):
        return current().grader(grader) if isinstance(grader, str) else grader
    return None
