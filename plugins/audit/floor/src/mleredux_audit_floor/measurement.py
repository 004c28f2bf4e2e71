"""Scores of everything that a certificate compares: oracles, reference models, null agents and wrong submissions."""

from __future__ import annotations

import csv
import math
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mleredux.plugin.artifact import Report
from mleredux.plugin.command import Catalogue
from mleredux.plugin.host import Job, Prepared, grade, score_in_children
from mleredux.plugin.task import Task

from mleredux_audit_floor.reference_models import GOOD, write_predictions
from mleredux_audit_floor.submissions import write_submissions

DISCRIMINATION, MOST_SECONDS = 0.8, 15
"""Minimum discrimination, and limit of the panel's CPU time."""
FOLDS = 5
"""Number of parts of the test table whose scores give the standard error of a score."""
BLIND = ("the sample submission", "0", "1", "0.5", "uniform numbers")
"""Null agents that use only the description and the format of the submission."""


def graded(
    task: Task, groups: dict[str, dict[str, Path]], private: Path, catalogue: Catalogue, parts: Sequence[Job] = ()
) -> tuple[dict[str, dict[str, Report]], list[float]]:
    """Grade submissions in groups, by name; return their reports, and the scores of further jobs."""
    jobs = [Job(task, path, private) for paths in groups.values() for path in paths.values()]
    scored = score_in_children([*jobs, *parts], catalogue)
    pairs = zip(jobs, scored, strict=False)
    reports = iter([grade(task, job.submission, private, catalogue, scored=score) for job, score in pairs])
    values = [float(getattr(score, "value", math.nan)) for score in scored[len(jobs) :]]
    return {group: {name: next(reports) for name in paths} for group, paths in groups.items()}, values


def fields_of(
    wrong: dict[str, Report], panel: dict[str, float | None], better: list[bool], seconds: float
) -> dict[str, dict[str, Any]]:
    """Return the fields of a certificate that do not depend on the form of submissions.

    Args:
        wrong: The reports of submissions that must be refused.
        panel: The scores of the panel.
        better: Whether a good solution beats a worse one, for each pair.
        seconds: CPU time of the panel.
    """
    accepted, share = [name for name, report in wrong.items() if report.valid_submission], statistics.fmean(better)
    discrimination = {"ok": share >= DISCRIMINATION, "value": round(share, 4), "panel": panel, "language_models": 0}
    return {
        "wrong_submissions": {"ok": not accepted, "refused": len(wrong) - len(accepted), "accepted": accepted},
        "discrimination": discrimination,
        "real_competitions": {"ok": None, "why": "A rank correlation needs a set of tasks."},
        "cost": {"ok": seconds < MOST_SECONDS, "cpu_seconds_of_panel": round(seconds, 2)},
    }


@dataclass(frozen=True)
class Measurement:
    """Reports by name, and the standard error of the scores of good models.

    Attributes:
        oracles: The answers, and the best predictions of someone who knows the structure.
        models: The panel.
        nulls, copies: Submissions made without learning; copies of public columns.
        wrong: Submissions that must be refused.
        error: The standard error of the best score of a good model.
        cpu_seconds: CPU time of fitting the panel.
    """

    task: Task
    oracles: dict[str, Report]
    models: dict[str, Report]
    nulls: dict[str, Report]
    copies: dict[str, Report]
    wrong: dict[str, Report]
    error: float
    cpu_seconds: float

    def value(self, report: Report) -> float:
        """Return the score, negated if lower is better; -inf if there is none."""
        sign = -1.0 if self.task.direction == "minimize" else 1.0
        return -math.inf if report.score is None else sign * report.score

    def skill(self, name: str) -> float:
        """Return the score of a model between that of a constant (0) and that of the answers (1)."""
        low, high = (self.value(report) for report in (self.models["constant"], self.oracles["answers"]))
        return (self.value(self.models[name]) - low) / (high - low) if high > low else 0.0


def measure(task: Task, prepared: Prepared, catalogue: Catalogue, scratch: Path) -> Measurement:
    """Write all submissions into `scratch`, and grade them.

    Raises:
        NotApplicable: The task does not consist of a training and a test table with a target.
    """
    public, private, form = prepared.public, prepared.private, task.submission
    answers, row = private / task.answers, next(iter(form.id_columns), "")
    oracles = {"answers": answers, "structure": private / "ceiling.csv"}
    began = time.process_time()
    models = write_predictions(task, public, scratch)
    spent = time.process_time() - began
    nulls, copies = {}, {}
    for seed in range(3):
        folder = scratch / f"null-{seed}"
        folder.mkdir()
        for kind, name, path in write_submissions(
            public, public / str(form.sample), folder, ids=form.id_columns, targets=form.target_columns, seed=seed
        ):
            if kind == "random" or (kind in ("sample", "constant") and not seed):
                nulls[f"{name}, seed {seed}" if seed else name] = path
            elif kind == "copy" and not seed:
                copies[name] = path
    groups = {
        "oracles": {name: path for name, path in oracles.items() if path.is_file()},
        "models": models,
        "nulls": nulls,
        "copies": copies,
        "wrong": dict(_invalid(answers, scratch)),
    }
    parts = [_fold(models[name], task, answers, row, number, scratch) for name in GOOD for number in range(FOLDS)]
    raw, values = graded(task, groups, private, catalogue, parts)
    # including the values that a verdict withholds, because they show what is attainable
    reports = {
        group: {name: report.model_copy(update=report.verdict.withheld) for name, report in of_group.items()}
        for group, of_group in raw.items()
    }
    spreads = [_error(values[start : start + FOLDS]) for start in range(0, len(values), FOLDS)]
    return Measurement(task, **reports, error=max(spreads), cpu_seconds=spent)


def _error(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else 0.0


def read(path: Path) -> list[list[str]]:
    """Return the rows of a CSV file, with its header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def _write(path: Path, rows: Iterable[list[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    return path


def _fold(path: Path, task: Task, answers: Path, row: str, number: int, scratch: Path) -> Job:
    """Return a job for every fifth row of a submission."""
    folder = scratch / f"fold-{path.stem}-{number}"
    head, *truth = read(answers)
    kept = {line[head.index(row)] for line in truth[number::FOLDS]}
    for source, target in ((answers, folder / "private" / task.answers), (path, folder / "submission.csv")):
        names, *lines = read(source)
        _write(target, [names, *(line for line in lines if line[names.index(row)] in kept)])
    return Job(task, folder / "submission.csv", folder / "private")


def _invalid(answers: Path, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Yield submissions that are wrong by construction: answers with one fault each."""
    head, *rows = read(answers)
    last, cells = rows[-1], rows[0]
    faults = {
        "a row is missing": [head, *rows[:-1]],
        "half of the rows are missing": [head, *rows[: len(rows) // 2]],
        "a row occurs twice": [head, *rows, last],
        "an id is unknown": [head, *rows[:-1], ["987654321", *last[1:]]],
        "ids are missing": [head[1:], *(row[1:] for row in rows)],
        "the target is missing": [head[:1], *(row[:1] for row in rows)],
        "a prediction is empty": [head, [cells[0], *("" for _ in cells[1:])], *rows[1:]],
        "there are no rows": [head],
        "the file is empty": [],
        "the header is missing": rows,
    }
    for name, content in faults.items():
        yield name, _write(scratch / "wrong" / f"{name.replace(' ', '-')}.csv", content)
