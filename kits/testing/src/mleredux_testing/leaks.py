"""Check whether public files reveal the answers."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from mleredux.models import SubmissionSchema, Task

from mleredux_testing.malformed import read_csv

_FEWEST = 5
_CSV_FIELD = 1 << 26


def leaks(task: Task, public: Path, answers: Path, schema: SubmissionSchema) -> Iterator[str]:
    """Find columns of public tables that equal the answers for all shared ids.

    Public CSV files that have the id columns are joined with the answers. A column with any name that equals a column
    of the answers in every joined row, with at least five rows and two values, reveals the answers.

    Args:
        task: The task.
        public: The folder of its public files.
        answers: The file of its answers.
        schema: Its submission schema.

    Yields:
        One sentence for each such column.
    """
    ids = task.submission.id_columns
    if not ids or answers.suffix != ".csv" or not answers.is_file():
        return
    csv.field_size_limit(_CSV_FIELD)
    header, rows = read_csv(answers)
    if not set(ids) <= set(header):
        return
    id_places = [header.index(name) for name in ids]
    held_out = [
        name for name in header if name not in ids and (not task.submission.target_columns or name in _targets(schema))
    ]
    truth = {tuple(row[place] for place in id_places): row for row in rows}
    for path in sorted(public.rglob("*.csv")):
        yield from _leaks_of(path, path.relative_to(public), ids, truth, header, held_out)


def _targets(schema: SubmissionSchema) -> set[str]:
    return {column.name for column in schema.columns if column.role == "target"}


def _leaks_of(
    path: Path,
    name: Path,
    ids: tuple[str, ...],
    truth: dict[tuple[str, ...], list[str]],
    answer_header: list[str],
    held_out: list[str],
) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        if not set(ids) <= set(header):
            return
        id_places = [header.index(column) for column in ids]
        pairs = [
            (place, answer_header.index(column))
            for place in range(len(header))
            if place not in id_places
            for column in held_out
        ]
        joined = 0
        values: dict[int, set[str]] = {answer: set() for _, answer in pairs}
        for row in rows:
            answer = truth.get(tuple(row[place] for place in id_places)) if len(row) == len(header) else None
            if answer is None:
                continue
            joined += 1
            pairs = [(mine, theirs) for mine, theirs in pairs if _equal(row[mine], answer[theirs])]
            for _, theirs in pairs:
                values[theirs].add(answer[theirs])
    if joined >= _FEWEST:
        for mine, theirs in pairs:
            if len(values[theirs]) > 1:
                answer_column = answer_header[theirs]
                yield f"column {header[mine]!r} of {name} is the answers' {answer_column!r} in all {joined} rows."


def _equal(first: str, second: str) -> bool:
    if first == second:
        return True
    try:
        return float(first) == float(second)
    except ValueError:
        return False
