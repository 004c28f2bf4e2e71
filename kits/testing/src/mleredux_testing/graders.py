"""Checks that every grader must pass."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mleredux._core.plugins import Catalogue, current
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux.models import Grader, GradingInput, Metric, Score, Submission, Task

from mleredux_testing.findings import Findings
from mleredux_testing.malformed import Form, Table, check_order, check_refusals, write_csv

NONE_FIT = "it accepts none of the answers tried."
_ROWS = 24
_CLOSE = 1e-6

TOY_ANSWERS: dict[str, Table] = {
    "labels": (["id", "target"], [[str(row), str(row % 2)] for row in range(_ROWS)]),
    "numbers": (["id", "target"], [[str(row), str(1 + row % 7 / 4)] for row in range(_ROWS)]),
    "lists": (["id", "target"], [[str(row), f"a{row} b{row % 5}"] for row in range(_ROWS)]),
}
"""Answers of kinds that most metrics accept: two classes (or their probabilities), positive numbers, lists of names."""


def check_grader(
    grader: Grader | str,
    tmp: Path | None = None,
    *,
    answers: Table | None = None,
    targets: Sequence[str] | None = None,
    options: dict[str, Any] | None = None,
    catalogue: Catalogue | None = None,
) -> Findings:
    """Check a grader: the answers score perfectly, order does not matter, invalid files are rejected with one sentence.

    Args:
        grader: The grader, or its id.
        tmp: A folder for files; None: a temporary folder.
        answers: Header and rows of valid answers, with the id as the first column; None: those of `TOY_ANSWERS`, of
        which the grader must accept at least one kind.
        targets: Columns of the answers that are predicted; None: all but the first.
        options: Options of the metric, if it needs any.
        catalogue: The plugins; None: those of this process.

    Raises:
        NotConforming: With all problems.
    """
    catalogue = catalogue or current()
    findings = Findings(f"Grader {grader if isinstance(grader, str) else grader.id}")
    with tempfile.TemporaryDirectory(prefix="mleredux-check-") as folder, findings.looking_at("grader"):
        checked = catalogue.grader(grader) if isinstance(grader, str) else grader
        findings.expect("title", checked.title.strip(), "it has no title.")
        place = tmp or Path(folder)
        candidates = {"given": answers} if answers is not None else TOY_ANSWERS
        why, tried = [], []
        for name, table in candidates.items():
            trial = _Trial(checked, table, targets or table[0][1:], options or {}, place / name)
            try:
                value = trial.grade(trial.best).value
            except (InvalidSubmission, TaskBroken) as error:
                why.append(f"{name}: {error}")
                continue
            if _perfect(checked, value) or name == list(candidates)[-1]:
                tried.append(Findings(findings.subject))
                _check_with(tried[-1], trial, value)
                if not tried[-1].wrong:
                    break
            else:
                why.append(f"{name}: the answers themselves score {value}, not {checked.perfect}.")
        if tried:  # a metric of texts also accepts numbers as text, but they are not its kind of answers
            findings.all += next((attempt.all for attempt in tried if not attempt.wrong), tried[0].all)
        else:
            findings.bad("answers", f"{NONE_FIT} {' '.join(why)}", "Give `answers` and `options`.")
    return findings.close()


class _Trial:
    """A grader with a task around it."""

    def __init__(
        self, grader: Grader, answers: Table, targets: Sequence[str], options: dict[str, Any], folder: Path
    ) -> None:
        folder.mkdir(parents=True)
        (folder / "description.md").write_text("# A trial\n", encoding="utf-8")
        self.grader, self.folder = grader, folder
        header, rows = answers
        places = [0, *(header.index(name) for name in targets)]
        self.table: Table = ([header[place] for place in places], [[row[place] for place in places] for row in rows])
        self.task = Task(
            id="trial",
            title="Trial",
            description=folder / "description.md",
            submission=Submission(id_columns=(header[0],), target_columns=tuple(targets)),
            metric=Metric(grader=grader, options=options),
            direction=grader.direction,
        )
        self.best = write_csv(folder / "best.csv", self.table)
        (folder / "private").mkdir()
        write_csv(folder / "private" / self.task.answers, answers)

    def grade(self, path: Path) -> Score:
        grading = GradingInput(path, self.folder / "private", self.task, self.task.metric.options)
        score = self.grader.score(grading)
        return score if isinstance(score, Score) else Score(value=float(score))


def _perfect(grader: Grader, value: float) -> bool:
    return grader.perfect is None or abs(value - grader.perfect) <= _CLOSE


def _check_with(findings: Findings, trial: _Trial, value: float) -> None:
    findings.expect(
        "perfect score",
        _perfect(trial.grader, value),
        f"the answers themselves score {value}; its declaration says {trial.grader.perfect}.",
    )
    findings.expect("number", math.isfinite(value), f"the answers themselves score {value}.")
    with findings.looking_at("same each time"):
        again = trial.grade(trial.best).value
        findings.expect("same each time", again == value, f"the same file scores {value}, then {again}.")
    header, rows = trial.table
    form = Form(ids=(header[0],), targets=tuple(header[1:]), numbers=_numeric(header, rows))
    check_order(findings, trial.best, form, trial.grade, trial.folder)
    check_refusals(findings, trial.best, form, trial.grade, trial.folder)


def _numeric(header: list[str], rows: list[list[str]]) -> tuple[str, ...]:
    def numeric(place: int) -> bool:
        try:
            return all(math.isfinite(float(row[place])) for row in rows)
        except ValueError:
            return False

    return tuple(name for place, name in enumerate(header) if place > 0 and numeric(place))
