"""Read MLE-bench's `submission.jsonl` and write its grading report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, ValidationError

from mleredux._core.store.files import write_atomically
from mleredux.errors import MlereduxError
from mleredux.models import Model, Report, first_problem
from mleredux.models.base import Problem, read_json


class Listed(Model):
    """One line of `submission.jsonl`. Unknown fields are ignored, as in MLE-bench."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    competition_id: str
    submission_path: str | None
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


def read_listed(path: Path, *, lenient: bool = False) -> list[Listed]:
    """Return the lines of a `submission.jsonl`.

    Args:
        path: The file.
        lenient: Whether to return malformed lines with their problem instead of raising an error.

    Raises:
        MlereduxError: The file can't be read, or a line is malformed.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MlereduxError(f"{path} can't be read: {error}.") from error
    listed = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith(("#", "//")):
            continue
        try:
            listed.append(Listed.model_validate(read_json(line)).model_copy(update={"problem": None}))
        except (ValueError, RecursionError) as error:
            problem = first_problem(error) if isinstance(error, ValidationError) else Problem("", str(error), line)
            malformed = MlereduxError(
                f"{path} line {number} is malformed: {problem.place or 'the line'}: {problem.message}.",
                hint='A line looks like {"competition_id": "digits", "submission_path": "submission.csv"}.',
            )
            if not lenient:
                raise malformed from error
            listed.append(Listed(competition_id="", submission_path=None, problem=str(malformed)))
    return listed


def aggregate(reports: Sequence[Report]) -> dict[str, Any]:
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
