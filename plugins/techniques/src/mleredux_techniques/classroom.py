"""A class: each student's own planted task from a list, what was submitted by the deadline, and which questions were
answered."""

from __future__ import annotations

import csv
import hashlib
import hmac
import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mleredux
from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.command import current
from mleredux.plugin.files import write_atomically

if TYPE_CHECKING:
    from mleredux.plugin.artifact import Report

FEEDBACK, RESULTS = "feedback.md", "results.json"
RIGHT = 0.995
"""A question with at least this score was answered right: reports show it as 1.00."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_SEEDS = 10**9


@dataclass(frozen=True)
class Student:
    """A row of the class list.

    Attributes:
        name: Also the name of the student's folder.
        task: The student's own task.
    """

    name: str
    task: str

    def document(self, folder: Path) -> Path:
        """Where the student's submission is expected."""
        return folder / self.name / current().task(self.task).submission.file


def read_class(path: Path, task: str | None) -> list[Student]:
    """Read a class list: a CSV file with the column `student`, and optionally `seed` or `task`.

    Args:
        path: The file.
        task: A technique task, such as `leakage@wine`; each student gets it with a planted seed: that of the column
            `seed`, otherwise one made of the student's name and the secret of this installation.

    Raises:
        MlereduxError: The list can't be read, or a row of it is not valid; the message names the row.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise MlereduxError(
            f"{path} can't be read: {why}.", hint="Name a CSV file with the column `student`."
        ) from None
    found: dict[str, Student] = {}
    for number, row in enumerate(rows, start=2):
        name = (row.get("student") or "").strip()
        if not is_name(name):
            raise MlereduxError(
                f"Line {number} of {path} has the student {name!r}.",
                hint="The column `student` has names of letters, digits, `.`, `_`, `@` and `-`, without spaces.",
            )
        if name in found:
            raise MlereduxError(f"Line {number} of {path} has {name} again.", hint="Name each student once.")
        found[name] = Student(name, _task_of(row, name, task, f"Line {number} of {path}"))
    if not found:
        raise MlereduxError(f"{path} names no student.", hint="Give it a line `student`, and one line a student.")
    return list(found.values())


def _task_of(row: dict[str, Any], name: str, task: str | None, place: str) -> str:
    if own := (row.get("task") or "").strip():
        return own
    if task is None:
        raise MlereduxError(f"{place} has no task.", hint="Give one for all with --task, e.g. `--task leakage@wine`.")
    question, at, base = task.partition("@")
    if not at or "+" in question:
        raise MlereduxError(f"{task!r} is not a plain technique task.", hint="Give one such as `leakage@wine`.")
    seed = (row.get("seed") or "").strip()
    if not seed:
        return own_task(name, task)
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", seed):
        raise MlereduxError(f"{place} has the seed {seed!r}.", hint="A seed is a number from 0 to 999999999.")
    return f"{question}+planted-{seed}@{base}"


def own_task(name: str, task: str) -> str:
    """A person's own variant of a plain technique task: planted, with the seed of their name."""
    question, _, base = task.partition("@")
    return f"{question}+planted-{seed_of(name, task)}@{base}"


def is_name(name: str) -> bool:
    """Whether a class list may have this name."""
    return _NAME.fullmatch(name) is not None


def seed_of(name: str, task: str) -> int:
    """A student's seed: the same each time on this installation, another one for another student or task."""
    from mleredux_techniques._kit.seeds import planting_salt

    digest = hmac.new(planting_salt(), f"student:{name}:{task}".encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") % _SEEDS


def hand_out(student: Student, folder: Path, data_dir: str | None) -> bool:
    """Write the public files and the description of the student's task to `FOLDER/STUDENT/task`.

    Returns:
        Whether they were written now: a folder that is there is not changed.
    """
    target = folder / student.name / "task"
    if target.exists():
        return False
    prepared = mleredux.prepare(student.task, data_dir=data_dir)
    part = target.with_name(".task")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(prepared.public, part)
    (part / "description.md").write_text(current().task(student.task).describe(obfuscated=False), encoding="utf-8")
    part.replace(target)
    return True


def collect(
    students: Iterable[Student], folder: Path, deadline: datetime | None, data_dir: str | None
) -> list[dict[str, Any]]:
    """Grade what each student submitted, or before the deadline only check its form.

    Writes `feedback.md` beside each graded submission, and `results.json` into the folder.

    Returns:
        A row for each student: `student`, `task`, `status`, `score`, `message`, and `questions`.
    """
    over = deadline is None or datetime.now(UTC) >= deadline
    rows = []
    for student in students:
        path = student.document(folder)
        row: dict[str, Any] = {"student": student.name, "task": student.task, "score": None, "message": None}
        row["questions"] = []
        if not path.is_file():
            row["status"] = "missing"
        elif deadline and datetime.fromtimestamp(path.stat().st_mtime, UTC) > deadline:
            row["status"] = "late"
        elif not over:
            verdict = mleredux.validate(path, student.task, data_dir=data_dir)
            row |= {"status": "submitted" if verdict.valid else "invalid", "message": verdict.message}
        else:
            row |= _graded(student, path, mleredux.grade(path, student.task, data_dir=data_dir))
        rows.append(row)
    if over:
        write_atomically(folder / RESULTS, json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    return rows


def _graded(student: Student, path: Path, report: Report) -> dict[str, Any]:
    from mleredux_techniques.feedback import text, title_of

    title = title_of(student.task)
    if title is None:
        raise NotFound(f"{student.task} is not a technique task.", hint="See `mleredux list techniques`.")
    write_atomically(path.with_name(FEEDBACK), text(student.task, title, report))
    parts = report.details.get("facts", {}).get("parts", [])
    return {
        "status": "graded" if report.valid_submission else "invalid",
        "score": report.score,
        "message": report.message,
        "questions": [{name: part[name] for name in ("name", "score", "weight")} for part in parts],
    }


def questions(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each question with how many answered it right, the hardest first.

    Returns:
        Rows of `question`, `right`, `answered`, and `mean`, the mean score from 0 to 1.
    """
    scores: dict[str, list[float]] = {}
    for row in rows:
        for part in row["questions"]:
            scores.setdefault(part["name"], []).append(float(part["score"]))
    counted = [
        {
            "question": name,
            "right": sum(score >= RIGHT for score in found),
            "answered": len(found),
            "mean": sum(found) / len(found),
        }
        for name, found in scores.items()
    ]
    return sorted(counted, key=lambda row: (row["mean"], row["question"]))
