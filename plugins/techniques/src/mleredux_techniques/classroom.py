"""Classes: each student's planted task, the submissions by the deadline, and the questions that were answered."""

from __future__ import annotations

import csv
import hashlib
import hmac
import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import mleredux
from mleredux.errors import MlereduxError, NotApplicable, NotFound, file_errors
from mleredux.plugin.artifact import Report, RunStore
from mleredux.plugin.command import current
from mleredux.plugin.files import write_atomically
from mleredux_agents import PERSON, PERSON_RULE

FEEDBACK, RESULTS, TERMS = "feedback.md", "results.json", "class.json"
RIGHT = 0.995
"""Minimum score of a correctly answered question; reports show it as 1.00."""
_SEEDS = 10**9
TRIES = 30
"""Maximum number of a student's seeds that are skipped."""


@dataclass(frozen=True)
class Student:
    """A row of the class list.

    Attributes:
        name: The student's name, also that of the student's folder.
        task: The student's own task.
        deadline: The last moment at which a submission counts, before which none is graded; None means no deadline.
    """

    name: str
    task: str
    deadline: datetime | None = None

    @property
    def over(self) -> bool:
        """Return whether submissions are graded now."""
        return self.deadline is None or datetime.now(UTC) >= self.deadline

    def document(self, folder: Path) -> Path:
        """Return the path where the student's submission is expected."""
        return folder / self.name / current().task(self.task).submission.file


@dataclass(frozen=True)
class Terms:
    """Defaults for students whose row does not override them; kept in the class's folder for later calls.

    Attributes:
        task: A technique task; each student gets a planted variant of it.
        deadline: A time in ISO 8601, in this machine's time zone unless it specifies another.
        public: Whether a submission gets a score before the deadline, on every second question; the others then decide
            the final score.
        refused: Maps each student to the number of seeds to whose data the task does not apply.
    """

    task: str | None = None
    deadline: str | None = None
    public: bool = False
    refused: dict[str, int] = field(default_factory=dict)

    def kept(self, folder: Path) -> Terms:
        """Return these terms, with missing ones taken from earlier calls."""
        before = Terms(**json.loads(path.read_text("utf-8"))) if (path := folder / TERMS).exists() else Terms()
        public = self.public or before.public
        return Terms(self.task or before.task, self.deadline or before.deadline, public, before.refused)

    def keep(self, folder: Path) -> None:
        """Save the terms in the class's folder."""
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / TERMS, json.dumps(asdict(self)) + "\n")


def moment(text: str, place: str) -> datetime:
    """Parse a deadline as a time with its zone.

    Raises:
        MlereduxError: The text is not a date or time.
    """
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise MlereduxError(
            f"{place} has the invalid deadline {text!r}.", hint="Use a date or a time, as in 2026-06-30T18:00."
        ) from None


def read_class(path: Path, terms: Terms) -> list[Student]:
    """Read a class list: a CSV file with the column `student`, and optionally `seed`, `task` or `deadline`.

    Args:
        path: The file.
        terms: The task and the deadline for students without their own. Each gets that task with a planted seed: from
            the column `seed`, otherwise derived from the student's name and this installation's secret.

    Raises:
        MlereduxError: The list can't be read, or a row is not valid; the message names the row.
    """
    hint = "Choose a CSV file with the column `student`."
    fault = file_errors(MlereduxError, f"{path} can't be read", hint, csv.Error)
    with fault, path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    students: dict[str, Student] = {}
    for number, row in enumerate(rows, start=2):
        name = (row.get("student") or "").strip()
        if not is_name(name):
            raise MlereduxError(f"Line {number} of {path} has the invalid student name {name!r}.", hint=PERSON_RULE)
        if name in students:
            raise MlereduxError(f"Line {number} of {path} repeats {name}.", hint="List each student once.")
        place, until = f"Line {number} of {path}", (row.get("deadline") or "").strip() or terms.deadline
        own = _task_of(row, name, terms, place)
        students[name] = Student(name, own, moment(until, place) if until else None)
    if not students:
        raise MlereduxError(f"{path} lists no students.", hint="Add the header `student`, and one line per student.")
    return list(students.values())


def _task_of(row: dict[str, Any], name: str, terms: Terms, place: str) -> str:
    task = terms.task
    if own := (row.get("task") or "").strip():
        return own
    if task is None:
        raise MlereduxError(f"{place} has no task.", hint="Set one for all with --task, e.g. `--task leakage@wine`.")
    question, at, base = task.partition("@")
    if not at or "+" in question:
        raise MlereduxError(f"{task!r} is not a plain technique task.", hint="Use one such as `leakage@wine`.")
    seed = (row.get("seed") or "").strip()
    if not seed:
        return own_task(name, task, terms.refused.get(name, 0))
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", seed):
        raise MlereduxError(f"{place} has the invalid seed {seed!r}.", hint="A seed is a number from 0 to 999999999.")
    return f"{question}+planted-{seed}@{base}"


def own_task(name: str, task: str, refused: int = 0) -> str:
    """Return a person's planted variant of a plain technique task, with the first seed that is not refused."""
    question, _, base = task.partition("@")
    return f"{question}+planted-{seed_of(name, task, refused)}@{base}"


def is_name(name: str) -> bool:
    """Return whether a class list may contain this name."""
    return PERSON.fullmatch(name) is not None


def seed_of(name: str, task: str, refused: int = 0) -> int:
    """Return a student's seed: deterministic on this installation, but different for each student and task.

    Args:
        refused: Number of seeds to skip.
    """
    from mleredux_techniques._kit.planting.seeds import planting_salt

    text = f"student:{name}:{task}{f':{refused}' * (refused > 0)}"
    digest = hmac.new(planting_salt(), text.encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") % _SEEDS


def next_handout(student: Student, terms: Terms, folder: Path, data_dir: str | None) -> tuple[Student, bool]:
    """Give a student a task; if it does not apply to the student's data, continue with the student's next seed.

    Returns:
        The student, possibly with another task, and whether files were written.
    """
    while True:
        try:
            return student, write_handout(student, folder, data_dir)
        except NotApplicable:
            number = terms.refused.get(student.name, 0)
            if terms.task is None or student.task != own_task(student.name, terms.task, number) or number == TRIES:
                raise
            terms.refused[student.name] = number + 1
            terms.keep(folder)
            student = replace(student, task=own_task(student.name, terms.task, number + 1))


def write_handout(student: Student, folder: Path, data_dir: str | None) -> bool:
    """Write the public files and the description of the student's task to `FOLDER/STUDENT/task`.

    Returns:
        Whether files were written; an existing folder is not changed.
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
    students: Iterable[Student], folder: Path, store: RunStore, data_dir: str | None = None, *, public: bool = False
) -> list[dict[str, Any]]:
    """Grade each student's submission, or only check its form before the student's deadline.

    The submission is the last document by the deadline, from the student's folder or from a run of `mleredux human
    start --name STUDENT`. Writes `feedback.md` into the folder of each graded student, and `results.json` into the
    class's.

    Args:
        public: Whether every second question is scored before the deadline, and the score after the deadline is that of
            the other questions.

    Returns:
        A row per student: `student`, `task`, `status`, `score`, `message`, and `questions`.
    """
    rows = []
    for student in students:
        submitted = _submitted(student, folder, store)
        counted = [path for at, path in submitted if student.deadline is None or at <= student.deadline]
        row: dict[str, Any] = {"student": student.name, "task": student.task, "score": None, "message": None}
        row["questions"] = []
        if not counted:
            row["status"] = "late" if submitted else "missing"
        elif not student.over:
            verdict = mleredux.validate(counted[-1], student.task, data_dir=data_dir)
            row |= {"status": "submitted" if verdict.valid else "invalid", "message": verdict.message}
            if public and verdict.valid:
                parts = parts_of(mleredux.grade(counted[-1], student.task, data_dir=data_dir), 1e-9)
                row |= {"score": _mean(parts[1::2]), "message": "The public score, on every second question."}
        else:
            report = mleredux.grade(counted[-1], student.task, data_dir=data_dir)
            row |= _graded(student, folder / student.name / FEEDBACK, report)
            row |= {"score": _mean(parts_of(report, 1e-9)[::2])} if public and report.valid_submission else {}
        rows.append(row)
    write_atomically(folder / RESULTS, json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    return rows


def _submitted(student: Student, folder: Path, store: RunStore) -> list[tuple[datetime, Path]]:
    """Return a student's submissions with their times, the oldest first."""
    path = student.document(folder)
    versions = [(datetime.fromtimestamp(path.stat().st_mtime, UTC), path)] if path.is_file() else []
    for row in store.rows(task=student.task):
        if str(row["agent"]).partition(":")[2] == student.name:
            versions += [(version.time, version.path) for version in store.get(row["id"]).submissions()]
    return sorted(versions)


def _graded(student: Student, feedback: Path, report: Report) -> dict[str, Any]:
    from mleredux_techniques.feedback import text, title_of

    title = title_of(student.task)
    if title is None:
        raise NotFound(f"{student.task} is not a technique task.", hint="See `mleredux list techniques`.")
    write_atomically(feedback, text(student.task, title, report))
    status = "graded" if report.valid_submission else "invalid"
    return {"status": status, "score": report.score, "message": report.message, "questions": parts_of(report)}


def parts_of(report: Report | None, least: float = 0) -> list[dict[str, Any]]:
    """Return the name, score and weight of the answer to each question with at least this weight."""
    parts = report.details.get("facts", {}).get("parts", []) if report else []
    return [{name: part[name] for name in ("name", "score", "weight")} for part in parts if part["weight"] >= least]


def _mean(parts: list[dict[str, Any]]) -> float | None:
    weight = sum(part["weight"] for part in parts)
    return sum(part["score"] * part["weight"] for part in parts) / weight if weight else None


def questions(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Count the correct answers to each question, the hardest question first.

    Returns:
        Rows of `question`, `right`, `answered`, and `mean`, the mean score from 0 to 1.
    """
    scores: dict[str, list[float]] = {}
    for row in rows:
        for part in row["questions"]:
            scores.setdefault(part["name"], []).append(float(part["score"]))
    counted = []
    for name, marks in scores.items():
        right = sum(score >= RIGHT for score in marks)
        counted.append({"question": name, "right": right, "answered": len(marks), "mean": sum(marks) / len(marks)})
    return sorted(counted, key=lambda row: (row["mean"], row["question"]))
