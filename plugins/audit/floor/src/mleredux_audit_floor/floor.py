"""The floor of a task: scores of submissions made without learning, next to its median."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mleredux.errors import TaskBroken
from mleredux.models.formats import plain
from mleredux.plugin.artifact import Report
from mleredux.plugin.command import Catalogue
from mleredux.plugin.task import Task

from mleredux_audit_floor.measurement import graded
from mleredux_audit_floor.submissions import write_documents, write_submissions

KINDS = ("null", "sample", "constant", "random", "copy", "injector", "hunter")


@dataclass(frozen=True)
class Row:
    """The best submission of one kind.

    Attributes:
        tried, scored: Number of graded submissions, and number of those with a score.
        best: A description of the best submission.
        score: Its score; None if none was valid.
    """

    kind: str
    tried: int
    scored: int
    best: str | None = None
    score: float | None = None
    percentile: float | None = None
    medal: str | None = None
    above_median: bool = False


@dataclass
class Floor:
    """The floor of a task, with a row for each kind of agent; `defects` has a sentence for each row that beats the
    median."""

    task: str
    version: str
    metric: str
    median: float | None
    rows: list[Row] = field(default_factory=list)

    @property
    def defects(self) -> list[str]:
        """Return a sentence for each score that an agent that learns nothing should not reach."""
        return [
            f"{row.kind} ({row.best}) scores {plain(row.score or 0, 6)}"
            + (f", better than the median {plain(self.median or 0, 6)}" if row.above_median else "")
            + (f", and wins a {row.medal} medal." if row.medal else ".")
            for row in self.rows
            if row.above_median or row.medal
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the floor as a JSON object."""
        return {**asdict(self), "defects": self.defects}


def floor_of(task: Task, public: Path, private: Path, catalogue: Catalogue, *, seed: int = 0) -> Floor:
    """Grade submissions made without learning.

    Args:
        public, private: The prepared files.

    Raises:
        TaskBroken: The task has no sample submission, or its grader fails.
    """
    with tempfile.TemporaryDirectory(prefix="mleredux-floor-") as scratch:
        submissions = list(_submissions(task, public, Path(scratch), seed))
        paths = {str(number): path for number, (_kind, _what, path) in enumerate(submissions)}
        reports, _ = graded(task, {"": paths}, private, catalogue)
    pairs = zip(submissions, reports[""].values(), strict=True)
    labelled = [(kind, name, report) for (kind, name, _path), report in pairs]
    floor = Floor(task.id, task.version, task.metric.id, labelled[0][2].median_threshold)
    floor.rows = [row_of(kind, labelled) for kind in KINDS if any(each[0] == kind for each in labelled)]
    return floor


def _submissions(task: Task, public: Path, folder: Path, seed: int) -> Iterable[tuple[str, str, Path]]:
    form = task.submission
    if form.document is not None:
        return write_documents(form.document.model_json_schema(), folder)
    sample = public / (form.sample or "")
    if not form.sample or not sample.is_file():
        raise TaskBroken(f"Task {task.id} has no sample submission to derive others from.")
    return write_submissions(public, sample, folder, ids=form.id_columns, targets=form.target_columns, seed=seed)


def row_of(kind: str, labelled: list[tuple[str, str, Report]]) -> Row:
    """Return the row for the best report of a kind; each report comes with its kind and a description of its
    submission."""
    own = [(name, report) for each, name, report in labelled if each == kind]
    valid = [(name, report) for name, report in own if report.score is not None and not math.isnan(report.score)]
    if not valid:
        return Row(kind, len(own), 0)
    sign = -1.0 if valid[0][1].is_lower_better else 1.0
    name, best = max(valid, key=lambda pair: sign * (pair[1].score or 0.0))
    best = best.model_copy(update=best.verdict.withheld)  # even if not trusted: it shows what is attainable
    return Row(kind, len(own), len(valid), name, best.score, best.percentile, best.medal, best.above_median)
