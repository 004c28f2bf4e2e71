"""Random halves of the test rows, as tables that a grader accepts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

from mleredux.plugin.task import Task

_MAX_BYTES = 64 << 20


def halves(task: Task, tables: Mapping[str, Path], count: int, random: Random) -> Iterator[dict[str, str]]:
    """Draw rows by their ids, without replacement, from several CSV files at once, keeping their order.

    Args:
        task: The task, which names the id columns.
        tables: Files by name; each must have the id columns, and the same ids.

    Yields:
        CSV content by name, with half of the ids; nothing if the tables do not match.
    """
    if not task.submission.id_columns:
        return
    read: dict[str, tuple[list[str], list[tuple[tuple[str, ...], list[str]]]]] = {}
    for name, path in tables.items():
        try:
            if path.stat().st_size > _MAX_BYTES:
                return
            with path.open(encoding="utf-8", newline="") as file:
                header, *rows = csv.reader(file)
            places = [header.index(column) for column in task.submission.id_columns]
            read[name] = header, [(tuple(row[place] for place in places), row) for row in rows if row]
        except (OSError, ValueError, IndexError, csv.Error):
            return
    ids = {name: {key for key, _ in rows} for name, (_, rows) in read.items()}
    every = next(iter(ids.values()))
    if len(every) < 4 or any(found != every for found in ids.values()):
        return
    ordered = sorted(every)
    for _ in range(count):
        chosen = set(random.sample(ordered, len(ordered) // 2))
        yield {
            name: _written(header, [row for key, row in rows if key in chosen]) for name, (header, rows) in read.items()
        }


def _written(header: list[str], rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()
