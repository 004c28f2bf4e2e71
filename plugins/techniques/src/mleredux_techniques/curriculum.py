"""What technique runs established about a competition, best ones first: a text for the next agent.

Only what was graded right is told, in words of the grader's own: nothing that an agent wrote freely goes on to others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.command import current

if TYPE_CHECKING:
    from mleredux.plugin.artifact import Report, Run, RunStore

RIGHT = 0.99
WORTH_TELLING = 0.5
"""A recommendation with a lower efficacy is not passed on."""


@dataclass(frozen=True)
class Lesson:
    """What one technique's runs established.

    Attributes:
        title: The technique's.
        findings: Facts that were graded right: name, explanation, and the run.
        recommendations: What was recommended and carried out, best first.
        runs: All runs that were looked at, best first.
    """

    technique: str
    title: str
    findings: list[dict[str, Any]] = field(default_factory=list)
    recommendations: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)


def collect(store: RunStore, task: str, *, most: int = 3) -> list[Lesson]:
    """The lessons of all graded technique runs on a competition. Planted instances are of other data: left out.

    Args:
        store: Where runs are.
        task: The competition's id.
        most: How many recommendations of one technique at most.

    Raises:
        NotFound: There are no such runs.
    """
    graded: dict[str, list[tuple[Run, Report]]] = defaultdict(list)
    for technique in current().entries("techniques"):
        for row in store.rows(task=f"{technique}@{task}"):
            try:
                run = store.get(row["id"])
                report = run.report
            except MlereduxError:
                continue  # a run that can't be read teaches nothing
            if report is not None and report.score is not None and report.details.get("facts"):
                graded[technique].append((run, report))
    if not graded:
        raise NotFound(
            f"There are no graded technique runs on {task} in {store.path}.",
            hint=f"Make some: `mleredux run imbalance@{task} --agent analyst`.",
        )
    return [_lesson(technique, runs, most) for technique, runs in graded.items()]


def _lesson(technique: str, runs: list[tuple[Run, Report]], most: int) -> Lesson:
    title = current().entries("techniques")[technique].ref.summary.get("title", technique)
    lesson = Lesson(technique, str(title))
    names, choices = set(), set()
    for run, report in sorted(runs, key=lambda item: (-(item[1].score or 0.0), item[0].id)):
        source = {"run": run.id, "agent": run.spec.agent, "score": report.score}
        lesson.runs.append(source)
        for part in report.details["facts"]["parts"]:
            if (part["score"] or 0.0) >= RIGHT and part["weight"] > 0 and part["name"] not in names:
                names.add(part["name"])
                lesson.findings.append({"name": part["name"], "explanation": part["explanation"], **source})
        efficacy, lines = report.details["efficacy"], tuple(report.details.get("recommendation") or ())
        enough = efficacy["score"] is None or efficacy["score"] >= WORTH_TELLING
        if lines and lines not in choices and enough and len(lesson.recommendations) < most:
            choices.add(lines)
            told = {"lines": list(lines), "efficacy": efficacy["score"], "uncertainty": efficacy["uncertainty"]}
            lesson.recommendations.append({**told, **source})
    return lesson


def text(task: str, lessons: list[Lesson]) -> str:
    """The lessons as Markdown, for people and for `mleredux run --context`."""
    return "\n".join(_lines(task, lessons)) + "\n"


def _lines(task: str, lessons: list[Lesson]) -> Iterator[str]:
    yield f"# What technique runs established about {task}\n"
    yield "Findings were graded against the data; recommendations were carried out with reference models and compared"
    yield "with a naive choice (efficacy 0) and a strong one (efficacy 1).\n"
    for lesson in lessons:
        best = lesson.runs[0]
        yield f"## {lesson.title}\n"
        runs = "1 graded run" if len(lesson.runs) == 1 else f"{len(lesson.runs)} graded runs"
        yield f"{runs}, best score {best['score']:.3f} (agent {best['agent']}).\n"
        yield from (f"- {finding['explanation']}" for finding in lesson.findings)
        if not lesson.findings:
            yield "- Nothing was established."
        for choice in lesson.recommendations:
            told = "these data don't tell it from others" if choice["efficacy"] is None else f"{choice['efficacy']:.2f}"
            yield f"\nRecommended (efficacy: {told}; score {choice['score']:.3f}):\n"
            yield from (f"- {line}" for line in choice["lines"])
        yield ""
