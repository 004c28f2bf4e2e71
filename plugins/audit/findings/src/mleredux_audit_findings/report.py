"""The page of an experiment on findings: the registration, all arms, and negative transfer by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import jinja2
from mleredux.errors import MlereduxError
from mleredux.models.formats import plain
from mleredux_techniques.shared import size

from mleredux_audit_findings.registration import registration

if TYPE_CHECKING:
    from mleredux_audit_findings.study import Study

PAIRS = (
    *(("sham", "graded"), ("none", "graded"), ("checklist", "graded"), ("unfiltered", "graded"), ("compute", "graded")),
    *(("none", "skill"), ("none", "unfiltered"), ("none", "sham"), ("none", "checklist"), ("none", "compute")),
)
"""The differences of the report; the first one decides."""


def kind(task: str) -> str:
    """Return whether a task's data is natural or planted, and whether its seed is held out."""
    if not task.startswith("synthetic-") and "+planted-" not in task:
        return "natural"
    return "planted, public seed" if "-public-" in task else "planted, secret seed"


def record(study: Study, analysis: Any) -> dict[str, Any]:
    """Return the results as a document: registration, and by measure the arms, differences and negative transfer.

    Args:
        study: The experiment.
        analysis: The result of `Experiment.analyse`.
    """
    began = datetime.fromisoformat(next(iter(study.registered.values())))
    measures = {}
    for measure in dict.fromkeys((analysis.measure, "percentile")):
        with suppress(MlereduxError):  # an arm has no run of which this is known
            measures[measure] = _measured(study, analysis, measure)
    return {
        "name": study.plan.experiment.name,
        "question": study.plan.experiment.question,
        "digest": study.digest,
        "registered": study.registered,
        "registration": registration(study.path, began),
        "measure": analysis.measure,
        "alpha": analysis.alpha,
        "baseline": study.writer.arms[0],
        "measures": measures,
        "tasks": {task: {"kind": kind(task), "statements": size(study.graded[task])} for task in study.tasks},
        "not_applicable": study.refused,
    }


def _measured(study: Study, analysis: Any, measure: str) -> dict[str, Any]:
    """Return the results by one measure; the primary one decides."""
    base, *others = study.writer.arms
    against = {arm: {row.task: row.difference for row in analysis.compare(base, arm, measure).tasks} for arm in others}
    arms = {arm.name: arm.estimates.get(measure) for arm in analysis.arms}
    return {
        "arms": {arm: {key: getattr(row, key, None) for key in ("mean", "low", "high")} for arm, row in arms.items()},
        "differences": [
            {
                "difference": f"{b} − {a}",
                "mean": row.difference,
                **{key: getattr(row, key) for key in ("interval", "p", "wins", "ties", "losses", "sentence")},
                "natural": _mean(task.difference for task in row.tasks if kind(task.task) == "natural"),
                "planted": _mean(task.difference for task in row.tasks if kind(task.task) != "natural"),
            }
            for a, b in PAIRS
            if {a, b} <= arms.keys()
            for row in [analysis.compare(a, b, measure)]
        ],
        "by_task": {task: {arm: differences.get(task) for arm, differences in against.items()} for task in study.tasks},
        "negative_transfer": {
            arm: {task: value for task, value in sorted(differences.items(), key=lambda item: item[1]) if value < 0}
            for arm, differences in against.items()
        },
    }


def page(study: Study, known: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    loader = jinja2.PackageLoader("mleredux_audit_findings", ".")
    environment = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    environment.filters |= {"number": _number, "span": _span}
    kinds = Counter(row["kind"] for row in known["tasks"].values())
    return environment.get_template("page.md.j2").render(
        known,
        kinds=", ".join(f"{count} {name}" for name, count in kinds.items()),
        natural_only=kinds.keys() == {"natural"},
        reader=study.reader.agent,
        writer=study.writer,
        seeds=study.plan.experiment.seeds,
        language_model="no-llm" not in study.agent.tags,
    )


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None


def _number(value: float | None) -> str:
    return "–" if value is None else plain(value, 3, signed=True)


def _span(interval: Any) -> str:
    return "–" if interval is None or interval[0] is None else f"{plain(interval[0], 3)} to {plain(interval[1], 3)}"
