"""Web pages: questions that were answered correctly, and findings of technique runs about a task."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import mleredux
from mleredux.errors import MlereduxError, NotApplicable, NotFound
from mleredux.plugin.artifact import Run
from mleredux.plugin.command import DataStore, current
from mleredux.plugin.page import Visit
from mleredux.plugin.task import Task

from mleredux_techniques.classroom import RESULTS, TRIES, is_name, own_task, parts_of, questions
from mleredux_techniques.curriculum import collect

_MOST_RUNS = 1_000
CLASS = "class"
"""The default folder of `mleredux classroom`, next to the directory of runs."""


def techniques(visit: Visit) -> dict[str, Any]:
    """Show all techniques with their runs and questions, and the class next to the directory of runs."""
    by_technique = defaultdict(list)
    for row in visit.rows(_MOST_RUNS, search="@"):
        question, at, _ = str(row["task"]).partition("@")
        if at:
            by_technique[question.partition("+")[0]].append(row)
    handed = defaultdict(list)
    for row in visit.submissions():
        handed[str(row["task"]).partition("@")[0].partition("+")[0]].append(row)
    listed = [
        {"id": name, "title": entry.ref.summary.get("title", name), "runs": len(by_technique[name]),
         "submissions": len(handed[name]), "tasks": sorted({row["task"] for row in by_technique[name] + handed[name]}),
         "questions": questions([*_answers(visit, by_technique[name]), *_weighed(handed[name])])}
        for name, entry in current().entries("techniques").items()
    ]  # fmt: skip
    listed.sort(key=lambda listing: not listing["runs"] + listing["submissions"])
    return {"techniques": listed, **_class(visit)}


def on_task(visit: Visit, task: Task) -> dict[str, Any] | None:
    """Show the findings of technique runs on a competition, or the questions of a technique task."""
    if "@" in task.id:
        rows = visit.rows(_MOST_RUNS, task=[task.id])
        handed = [row for row in visit.submissions() if row["task"] == task.id]
        plain = "+" not in task.id
        own = next(_variants(visit, visit.user, task.id), None) if plain and is_name(visit.user) else None
        totals = questions([*_answers(visit, rows), *_weighed(handed)])
        context = {"questions": totals, "runs": len(rows) + len(handed), "own": own, "plain": plain, "lessons": None}
        return {**context, "why": DataStore(visit.data_dir).refusal(task), "base": _base(task.id), "offered": []}
    offered = [
        (f"{name}@{task.id}", str(entry.ref.summary.get("title", name)))
        for name, entry in current().entries("techniques").items()
        if not entry.ref.summary.get("categories") or task.category in entry.ref.summary["categories"]
    ]
    visible = SimpleNamespace(path="this list", rows=lambda task: visit.rows(_MOST_RUNS, task=[task]), get=visit.open)
    try:
        lessons = collect(visible, task.id)
    except NotFound:
        lessons = []
    return {"offered": offered, "lessons": lessons, "questions": [], "runs": 0} if offered or lessons else None


def own(visit: Visit) -> str:
    """Redirect a person to their own variant once it is prepared; skip variants that the task does not apply to.

    Raises:
        MlereduxError: The name can't be that of a student, or no variant can be prepared.
    """
    name, task = ((visit.form.get(field) or [""])[-1].strip() for field in ("name", "task"))
    if not is_name(name):
        raise MlereduxError(f"{name!r} is not a valid name.", hint="Use letters, digits, `.`, `_`, `@` and `-`.")
    refused: MlereduxError = NotApplicable(f"{task} applies to no variant of {name}.", hint="Choose another task.")
    for variant in _variants(visit, name, task):
        try:
            mleredux.prepare(variant, data_dir=visit.data_dir)
        except NotApplicable as error:
            refused = error
        else:
            return visit.link("tasks", variant)
    raise refused


def _variants(visit: Visit, name: str, task: str) -> Iterator[str]:
    """Yield a person's variants as a class gets them, without those to which the task is known not to apply."""
    store = DataStore(visit.data_dir)
    for number in range(TRIES + 1):
        variant = own_task(name, task, number)
        if store.refusal(current().task(variant)) is None:
            yield variant


def _answers(visit: Visit, rows: list[Any]) -> list[dict[str, Any]]:
    """Return the scored questions of each graded run."""
    graded = (row for row in rows if row["score"] is not None)
    return _weighed({"questions": _parts(visit, row["id"], str(row["updated_at"]))} for row in graded)


def _weighed(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the questions that count."""
    return [{"questions": [part for part in row["questions"] if part["weight"] > 0]} for row in rows]


def _parts(visit: Visit, run_id: str, changed: str) -> list[dict[str, Any]]:
    try:
        return _read(visit.open(run_id).path, changed)
    except MlereduxError:
        return []


@lru_cache(maxsize=4_096)
def _read(path: Path, _changed: str) -> list[dict[str, Any]]:
    return parts_of(Run(path).report)


def _class(visit: Visit) -> dict[str, Any]:
    """Return the class: on a server, the tasks with a deadline; otherwise the results of `mleredux classroom`."""
    if rows := [row for row in visit.submissions() if row["class"]]:
        return {"students": rows, "asked": questions(_weighed(rows)), "board": board(rows)}
    try:
        rows = json.loads((visit.folder.parent / CLASS / RESULTS).read_text()) if visit.folder else []
        return {"students": rows, "asked": questions(rows), "board": board(rows)}
    except (OSError, ValueError, KeyError, TypeError):
        return {"students": [], "asked": [], "board": []}


class Place(NamedTuple):
    """A student's place: the mean over the tasks of the class, counting missing scores as 0, and the number of scored
    tasks. Scores of techniques are from 0 to 1; for other tasks, the share of the class that a score beats or equals
    counts.
    """

    rank: int
    student: str
    mean: float
    graded: int


def board(rows: Sequence[Mapping[str, Any]]) -> list[Place]:
    """Rank the students of a class, the best first; those with equal means share a rank."""
    scores: dict[str, dict[str, float]] = {_base(row["task"]): {} for row in rows}
    for row in rows:
        if row["score"] is not None:
            scores[_base(row["task"])][str(row["student"])] = float(row["score"])
    tasks = [own if "@" in task else _shares(task, own) for task, own in scores.items()]
    graded = {str(row["student"]): [own[name] for own in tasks if (name := str(row["student"])) in own] for row in rows}
    means = {name: round(sum(own) / len(tasks), 9) for name, own in graded.items()}
    better = sorted(means.values(), reverse=True)
    return sorted(Place(better.index(mean) + 1, name, mean, len(graded[name])) for name, mean in means.items())


def _shares(task: str, own: Mapping[str, float]) -> dict[str, float]:
    sign = -1 if current().task(task).direction == "minimize" else 1
    return {name: sum(sign * other <= sign * score for other in own.values()) / len(own) for name, score in own.items()}


def _base(task: str) -> str:
    """Return a task's id without the variant, which differs between students."""
    return re.sub(r"\+[^@]*", "", task, count=1)
