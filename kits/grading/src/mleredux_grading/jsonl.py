"""Read and grade MLE-bench's `submission.jsonl`, and write its grading report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mleredux import prepare
from mleredux._core.plugins import current
from mleredux._core.sandboxes.slots import machine
from mleredux._core.stages.grade import Job, grade, score_in_children
from mleredux._core.store.files import write_atomically
from mleredux._core.submissions.files import submitted
from mleredux.errors import MlereduxError, file_errors, file_fault
from mleredux.models import Model, Report, Task, first_problem
from mleredux.models.base import Problem, read_json
from pydantic import ConfigDict, ValidationError

from mleredux_grading.copies import remark_on

BYTES_PER_GRADER = 64 * 2**20
"""Bytes of submissions per grading process; below this, a second process is not worth its imports."""


class Listed(Model):
    """One line of `submission.jsonl`. Unknown fields are ignored, as in MLE-bench."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    competition_id: str
    """The id of the task."""
    submission_path: str | None
    """The path of the submission; None if there is none."""
    problem: str | None = None
    """The reason if the line can't be read."""

    def refused(self, problem: str) -> Report:
        """Return the report for a line that can't be graded."""
        return Report(
            competition_id=self.competition_id,
            score=None,
            submission_exists=False,
            valid_submission=False,
            is_lower_better=False,
            created_at=datetime.now(UTC),
            submission_path=self.submission_path or "",
            message=problem,
            task_version="",
            metric="",
        )


def read_jsonl(path: Path, *, lenient: bool = False) -> list[Listed]:
    """Return the lines of a `submission.jsonl`.

    Args:
        path: The file.
        lenient: Whether to return malformed lines with their problem instead of raising an error.

    Raises:
        MlereduxError: The file can't be read, or a line is malformed.
    """
    with file_errors(MlereduxError, f"{path} can't be read"):
        text = path.read_text(encoding="utf-8-sig", errors="replace" if lenient else "strict")
    listed = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith(("#", "//")):
            continue
        try:
            listed.append(Listed.model_validate(read_json(line)).model_copy(update={"problem": None}))
        except (ValueError, RecursionError) as error:
            fault = first_problem(error) if isinstance(error, ValidationError) else Problem("", file_fault(error), line)
            malformed = MlereduxError(
                f"{path} line {number} is malformed: {fault.place or 'the line'}: {fault.message}.",
                hint='A line looks like {"competition_id": "digits", "submission_path": "submission.csv"}.',
            )
            if not lenient:
                raise malformed from error
            listed.append(Listed(competition_id="", submission_path=None, problem=str(malformed)))
    return listed


def aggregate_reports(reports: Sequence[Report]) -> dict[str, Any]:
    """Return MLE-bench's grading report of several submissions: totals, and each report."""

    def count(name: str) -> int:
        return sum(bool(getattr(report, name)) for report in reports)

    return {
        "total_runs": len(reports),
        "total_runs_with_submissions": count("submission_exists"),
        "total_valid_submissions": count("valid_submission"),
        "total_medals": count("any_medal"),
        "total_gold_medals": count("gold_medal"),
        "total_silver_medals": count("silver_medal"),
        "total_bronze_medals": count("bronze_medal"),
        "total_above_median": count("above_median"),
        "competition_reports": [report.model_dump(mode="json") for report in reports],
    }


def write_report(report: dict[str, Any], folder: Path) -> Path:
    """Write an aggregated report into a folder, with the time in its name as in MLE-bench."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S-%Z}_grading_report.json"
    write_atomically(path, json.dumps(report, indent=2) + "\n")
    return path


def grade_listed(
    lines: Sequence[Listed], data_dir: Path | str | None = None, *, lenient: bool = False
) -> dict[str, Any]:
    """Grade submissions; return MLE-bench's grading report.

    The `note` of a submission's report states whether it is a copy of the sample or of the answers.

    Args:
        lines: The submissions.
        data_dir: Folder for data.
        lenient: Whether a line that can't be graded gets a report with the reason, instead of raising an error.

    Raises:
        MlereduxError: A competition is unknown or can't be prepared, or its grader is broken; not if lenient.
    """
    known: dict[str, tuple[Task, Path] | str] = {}
    for name in dict.fromkeys(line.competition_id for line in lines if not line.problem):
        try:
            known[name] = current().task(name), prepare(name, data_dir=data_dir).private
        except MlereduxError as error:
            if not lenient:
                raise
            known[name] = str(error)
    jobs: dict[int, Job] = {}
    for number, line in enumerate(lines):
        place, file = known.get(line.competition_id, ""), submitted(line.submission_path or "")
        if not isinstance(place, str) and isinstance(file, Path):
            jobs[number] = Job(place[0], file, place[1])
    size = sum(job.submission.stat().st_size for job in jobs.values())
    workers = min(int(machine().cpus) or 1, 1 + size // BYTES_PER_GRADER)
    scored = dict(zip(jobs, score_in_children(list(jobs.values()), current(), workers=workers), strict=True))

    def graded(number: int, line: Listed) -> Report:
        place, file = line.problem or known[line.competition_id], submitted(line.submission_path or "")
        if isinstance(place, str):
            return line.refused(place)
        task, private = place
        how: dict[str, Any] = {"shown_path": line.submission_path or "", "scored": scored.get(number)}
        try:
            report = grade(task, jobs[number].submission if number in jobs else file, private, current(), **how)
        except MlereduxError as error:
            if not lenient:
                raise
            return line.refused(str(error))
        remark = remark_on(report, task, file, private, current()) if isinstance(file, Path) else None
        return report.model_copy(update={"note": " ".join(filter(None, (report.note, remark))) or None})

    return aggregate_reports([graded(number, line) for number, line in enumerate(lines)])


def grade_jsonl(
    listed: Path | str, *, output_dir: Path | str | None = None, data_dir: Path | str | None = None
) -> tuple[dict[str, Any], Path | None]:
    """Grade every line of MLE-bench's `submission.jsonl`; a line that can't be graded does not affect the others.

    Args:
        listed: A file with one JSON object per line, with `competition_id` and `submission_path` (or null); empty lines
            and lines that start with `#` or `//` are skipped.
        output_dir: The folder for `<time>_grading_report.json`; None: no file is written.
        data_dir: Folder for data.

    Returns:
        The report of `grade_listed`, and the path it was written to.

    Raises:
        MlereduxError: The file can't be read.
    """
    total = grade_listed(read_jsonl(Path(listed), lenient=True), data_dir, lenient=True)
    return total, write_report(total, Path(output_dir)) if output_dir is not None else None
