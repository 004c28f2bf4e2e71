"""Findings of technique runs on a competition, best first, as text for the next agent.

The text contains only facts that were graded as correct, in the grader's words; an agent's free text is never passed
on. The next run is graded with the labels of private test rows, so the findings, the efficacies and the order of runs
do not depend on them. The truth of planted data is known without these labels. Only experiments
that compare texts use the agents' own claims (`graded=False`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.artifact import Report, Run
from mleredux.plugin.command import current

from mleredux_techniques._kit.declaration.grader import combined
from mleredux_techniques.texts import rendered

RIGHT = 0.99
WORTH_TELLING = 0.5
"""Minimum efficacy of a recommendation that is passed on."""


class Runs(Protocol):
    """The runs to read: a `RunStore`, or the part of it that a user may see."""

    @property
    def path(self) -> object:
        """Return the location of the runs."""

    def rows(self, *, task: str) -> list[dict[str, Any]]:
        """Return the rows of a task's runs, with the column `id`."""

    def get(self, name: str, /) -> Run:
        """Return a run."""


@dataclass(frozen=True)
class Lesson:
    """The findings of one technique's runs.

    Attributes:
        title: The technique's title.
        findings: Facts that were graded as correct, with name, explanation and run.
        recommendations: Recommendations that were executed, best first.
        runs: All runs that were read, best first.
    """

    technique: str
    title: str
    findings: list[dict[str, Any]] = field(default_factory=list)
    recommendations: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)


def collect(store: Runs, task: str, *, most: int = 3, graded: bool = True) -> list[Lesson]:
    """Collect the lessons of all graded technique runs on a competition, or on a planted instance of one.

    Args:
        store: The runs.
        task: The competition's id.
        most: Maximum number of recommendations per technique.
        graded: Whether to leave out answers that were not graded as correct; otherwise, all claims and recommendations.

    Raises:
        NotFound: There are no such runs, or there is no such task.
    """

    def runs() -> Iterator[tuple[str, Run]]:
        for technique in current().entries("techniques"):
            for row in _rows(store, technique, task):
                with suppress(MlereduxError):  # skip unreadable runs
                    yield technique, store.get(row["id"])

    lessons = lessons_of(runs(), most=most, graded=graded)
    if not lessons:
        current().task(task)
        raise NotFound(
            f"There are no graded technique runs on {task} in {store.path}.",
            hint=f"Create one: `mleredux run imbalance@{task} --agent analyst`.",
        )
    return lessons


def lessons_of(runs: Iterable[tuple[str, Run]], *, most: int = 3, graded: bool = True) -> list[Lesson]:
    """Return the lessons of runs on one task, each with its technique, as `collect` does."""
    by_technique: dict[str, list[tuple[Run, Report]]] = defaultdict(list)
    for technique, run in runs:
        with suppress(MlereduxError):
            report = run.report
            if report is not None and report.score is not None and report.details.get("facts"):
                by_technique[technique].append((run, report))
    return [(_lesson if graded else _claims)(technique, known, most) for technique, known in by_technique.items()]


def _rows(store: Runs, technique: str, task: str) -> Iterator[dict[str, Any]]:
    """Yield the runs of a technique on a task; `leakage+planted-7@wine` and `leakage@wine+planted-7` are the same."""
    yield from store.rows(task=f"{technique}@{task}")
    base, plus, variant = task.partition("+")
    if plus:
        yield from store.rows(task=f"{technique}+{variant}@{base}")


def _parts(report: Report) -> list[dict[str, Any]]:
    """Return the components of the facts whose truth does not use labels of private test rows."""
    kept_back = report.details.get("private", ())
    return [part for part in report.details["facts"]["parts"] if part["name"] not in kept_back and part["weight"] > 0]


def _public_score(report: Report) -> float:
    """Return the score without the components that use labels of private test rows."""
    parts = _parts(report)
    weight = sum(part["weight"] for part in parts)
    facts = sum((part["score"] or 0.0) * part["weight"] for part in parts) / weight if weight else 0.0
    decided = any(part.get("decides", True) for part in parts)
    return round(combined(facts, report.details["efficacy"].get("training"), decided=decided), 6)


def _lesson(technique: str, runs: list[tuple[Run, Report]], most: int) -> Lesson:
    lesson = Lesson(technique, _title(technique))
    names, choices = set(), set()
    for run, report in sorted(runs, key=lambda item: (-_public_score(item[1]), item[0].id)):
        source = {"run": run.id, "agent": run.spec.agent, "score": _public_score(report)}
        lesson.runs.append(source)
        for part in _parts(report):
            if (part["score"] or 0.0) >= RIGHT and part["name"] not in names:
                names.add(part["name"])
                lesson.findings.append({"name": part["name"], "explanation": part["explanation"], **source})
        if report.details.get("private"):
            continue  # the test labels decided whether a recommendation is right
        efficacy, lines = report.details["efficacy"].get("training"), tuple(report.details.get("recommendation") or ())
        enough = efficacy is None or efficacy >= WORTH_TELLING
        if lines and lines not in choices and enough and len(lesson.recommendations) < most:
            choices.add(lines)
            error = report.details["efficacy"]["uncertainty"]
            lesson.recommendations.append({"lines": list(lines), "efficacy": efficacy, "uncertainty": error, **source})
    return lesson


def _claims(technique: str, runs: list[tuple[Run, Report]], most: int) -> Lesson:
    """Return the claims and recommendations of agents, in the order of their runs."""
    lesson = Lesson(technique, _title(technique))
    for _, report in sorted(runs, key=lambda item: item[0].id)[:most]:
        parts = report.details["facts"]["parts"]
        answers = {part["name"]: part["value"].get("given") for part in parts if isinstance(part.get("value"), Mapping)}
        claims = [f"{name}: {str(value)[:300]}" for name, value in answers.items() if value not in (None, "", [], {})]
        lesson.findings.extend({"name": claim, "explanation": claim} for claim in claims)
        if lines := report.details.get("recommendation"):
            lesson.recommendations.append({"lines": list(lines)})
    return lesson


def _title(technique: str) -> str:
    return str(current().entries("techniques")[technique].ref.summary.get("title", technique))


def text(task: str, lessons: list[Lesson], *, graded: bool = True) -> str:
    """Format the lessons as Markdown, for readers and for `mleredux run --context`."""
    return rendered("findings.md.j2", task=task, lessons=lessons, graded=graded)
