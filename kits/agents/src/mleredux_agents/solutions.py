"""Submissions with the best possible score, for exports and validators; never shown to agents."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from mleredux.models import Task


def solution_of(task: Task, prepared: Path) -> bytes | None:
    """Return a submission with the best possible score.

    Args:
        task: The task.
        prepared: Its prepared folder, with `public` and `private`.

    Returns:
        The task's own `solution`, or else its answers; None if these do not have the form of a submission.
    """
    private, form = prepared / "private", task.submission
    if task.solution is not None:
        return task.solution(task, private)
    if form.sample is None or not form.sample.endswith(".csv") or not task.answers.endswith(".csv"):
        return None
    csv.field_size_limit(1 << 26)
    with (prepared / "public" / form.sample).open(encoding="utf-8-sig", newline="") as file:
        columns = next(csv.reader(file), [])
    with (private / task.answers).open(encoding="utf-8-sig", newline="") as file:
        answers = csv.DictReader(file)
        if not columns or not {*columns} <= {*(answers.fieldnames or ())}:
            return None
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(answers)
    return text.getvalue().encode()
