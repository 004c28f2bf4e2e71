"""Detect submissions that are copies of a public file, or of one that the agent should not have."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

from mleredux._core.plugins import Catalogue
from mleredux._core.submissions.files import open_regular
from mleredux.models import Report, Task

_LARGEST = 64 << 20
"""Maximum size of a file that is compared by its cells; larger files are compared byte by byte."""


def remark_on(report: Report, task: Task, submission: Path, private: Path, catalogue: Catalogue) -> str | None:
    """Return a sentence if a graded submission is a copy of the sample or of the answers, in any order of rows."""
    sample = private.parent / "public" / (task.submission.sample or "")
    if _same(submission, private / task.answers, task):
        return "It is a copy of the answers."
    if _same(submission, sample, task):
        return "It is a copy of the sample submission."
    if report.score is not None and report.score == round(report.score):  # others need no graders
        grader = task.metric.grader
        grader = catalogue.grader(grader) if isinstance(grader, str) else grader
        if report.score == grader.perfect:
            return "Its score is perfect: compare the submission with the answers."
    return None


def _same(submission: Path, other: Path, task: Task) -> bool:
    """Return whether two files have the same predictions, in the columns that both have."""
    if not other.is_file():
        return False
    mine, its = _content(submission), _content(other)
    if not (isinstance(mine, list) and isinstance(its, list) and mine and its):
        return bool(mine == its)
    names = [name for name in its[0] if name in mine[0]]
    if not set(names) - set(task.submission.id_columns):
        return False
    return _rows(mine, names) == _rows(its, names)


def _rows(table: list[list[str]], names: list[str]) -> Counter[tuple[str | float, ...]]:
    places = [table[0].index(name) for name in names]
    return Counter(tuple(_plain(row[place]) for place in places) for row in table[1:])


def _content(path: Path) -> Any:
    """Return the rows of a table as a list, the value of a JSON document, or the bytes of anything else."""
    with open_regular(path) as file:
        data = file.read(_LARGEST)
    try:
        if path.suffix == ".json":
            return {"document": json.loads(data)}
        rows = [row for row in csv.reader(io.StringIO(data.decode("utf-8-sig"))) if row]
        return rows if all(len(row) == len(rows[0]) for row in rows) else data
    except (ValueError, RecursionError, csv.Error):
        return data


def _plain(cell: str) -> str | float:
    try:
        return float(cell)
    except ValueError:
        return cell.strip()
