"""Describe the problems of a document in sentences with JSON paths."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mleredux.models.formats import plain
from pydantic import BaseModel, ValidationError

from mleredux_rollout.models import BRANCHES, Step, Trajectory

MAX_PROBLEMS = 100
"""Maximum number of problems to list; a final entry then states that there are more."""
_PLAIN_STEP = {"step_id": 1, "source": "user", "message": ""}
_SHOWN = 60
_TYPES = {
    str: "text",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "an object",
}


@dataclass(frozen=True)
class Problem:
    """A problem and its location.

    Attributes:
        path: JSON path of the location (`$.steps[3].message`); `$` is the whole document.
        message: One sentence without the period.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def problems_of(document: Any) -> list[Problem]:
    """Return the problems of a document, at most `MAX_PROBLEMS`; empty if it is valid."""
    problems: dict[Problem, None] = {}
    for problem in _problems(document, ""):
        if len(problems) == MAX_PROBLEMS:
            return [*problems, Problem("$", f"there are more problems than the {MAX_PROBLEMS} listed")]
        problems[problem] = None
    return list(problems)


def problem_of(error: ValidationError) -> Problem:
    """Return the first problem of a failed validation."""
    return next(_told(error, ""))


def _problems(document: Any, at: str) -> Iterator[Problem]:
    """Yield problems of the fields, then of steps, of embedded documents, and of relations between them."""
    if not isinstance(document, dict):
        yield Problem(f"${at}", f"a rollout must be an object, not {_type_of(document)}")
        return
    clean = True
    shell = dict(document)
    steps, embedded = document.get("steps"), document.get("subagent_trajectories")
    if isinstance(steps, list) and steps:
        shell["steps"] = [_PLAIN_STEP]
    if isinstance(embedded, list):
        shell["subagent_trajectories"] = None
    for problem in _validate(Trajectory, shell, at):
        clean = False
        yield problem
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        for problem in _validate(Step, step, f"{at}.steps[{index}]"):
            clean = False
            yield problem
    for index, part in enumerate(embedded if isinstance(embedded, list) else ()):
        for problem in _problems(part, f"{at}.subagent_trajectories[{index}]"):
            clean = False
            yield problem
    if clean:
        yield from _validate(Trajectory, document, at)


def _validate(model: type[BaseModel], value: Any, at: str) -> Iterator[Problem]:
    try:
        model.model_validate(value)
    except ValidationError as error:
        yield from _told(error, at)


def _told(error: ValidationError, at: str) -> Iterator[Problem]:
    for details in error.errors(include_url=False):
        loc = details["loc"]
        places = [part for part in loc[:-1] if part not in BRANCHES] + [*loc[-1:]]
        if places and places[-1] in BRANCHES:
            places.pop()
        if details["type"] == "missing":
            yield Problem(f"${at}{_path(places[:-1])}", f"`{places[-1]}` is missing")
        else:
            context = details.get("ctx", {})
            place = f"${at}{_path(places)}{context.get('at', '')}"
            yield Problem(place, _sentence(details["type"], details["msg"], details["input"], context))


def _sentence(kind: str, message: str, value: Any, context: dict[str, Any]) -> str:
    if kind == "extra_forbidden":
        return "the format has no such field; agent-specific values belong in `extra`"
    if kind == "literal_error":
        return f"must be {context['expected']}, is {_shown(value)}"
    if kind in _WANTED:
        return f"{_WANTED[kind]} is expected here, not {_type_of(value)}"
    if kind == "greater_than_equal":
        return f"must be {plain(context['ge'])} or more, is {_shown(value)}"
    if kind == "too_short":
        return "must not be empty"
    if kind == "finite_number":
        return "must be a finite number"
    return message


_WANTED = {
    "string_type": "text",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
}


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    return _TYPES.get(type(value), type(value).__name__)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return _type_of(value)
    text = json.dumps(value[:_SHOWN] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _path(places: Sequence[int | str]) -> str:
    """Return a JSON path; names that are not plain words are in brackets."""
    steps = []
    for place in places:
        if isinstance(place, int):
            steps.append(f"[{place}]")
        elif place.isidentifier() and len(place) <= _SHOWN:
            steps.append(f".{place}")
        else:
            steps.append(f"[{_shown(place)}]")
    return "".join(steps)
