"""Read and write ATIF documents within limits, because they come from agents; describe their problems in sentences with
JSON paths.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, file_errors
from mleredux.models.base import MAX_MARKS, count_marks, parse
from mleredux.models.formats import plain
from mleredux.plugin.files import write_atomically
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from mleredux_rollout.models import BRANCHES, Step, Trajectory

MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of a document in bytes."""

_INDENTED_BYTES = 1 << 20


class InvalidRollout(MlereduxError):
    """A document can't be read, or is not a valid rollout."""


def read_rollout(path: Path, *, max_bytes: int = MAX_BYTES) -> Trajectory:
    """Return the document in a file.

    Args:
        path: The file.
        max_bytes: The size limit in bytes.

    Raises:
        InvalidRollout: The document is missing, too large, not JSON, or breaks a rule of the format.
    """
    return parse_rollout(read_bytes(path, max_bytes=max_bytes))


def parse_rollout(data: bytes) -> Trajectory:
    """Return the document in these bytes; NaN, invalid Unicode and a byte order mark are tolerated.

    Raises:
        InvalidRollout: The bytes are not JSON, or break a rule of the format.
    """
    try:
        return Trajectory.model_validate(parse_json(data, parse))
    except ValidationError as error:
        raise InvalidRollout(
            f"The rollout violates a rule of its format: {problem_of(error)}.",
            hint="`mleredux_rollout.check_rollout` lists every problem.",
        ) from None


def check_rollout(path: Path, *, max_bytes: int = MAX_BYTES) -> list[Problem]:
    """Return the problems of the document in a file, up to a maximum number; empty if it is valid.

    Args:
        path: The file.
        max_bytes: The size limit in bytes.
    """
    try:
        return problems_in(read_bytes(path, max_bytes=max_bytes))
    except InvalidRollout as error:
        return [Problem("$", error.message.rstrip("."))]


def problems_in(data: bytes) -> list[Problem]:
    """Return the problems of the document in these bytes; empty if it is valid."""
    try:
        return problems_of(parse_json(data))
    except InvalidRollout as error:
        return [Problem("$", error.message.rstrip("."))]


def dump_rollout(trajectory: Trajectory) -> bytes:
    """Return the document as JSON in UTF-8, indented unless it is large; unset fields are omitted."""
    compact = trajectory.model_dump_json(exclude_none=True)
    if len(compact) > _INDENTED_BYTES:
        return compact.encode() + b"\n"
    return trajectory.model_dump_json(exclude_none=True, indent=1).encode() + b"\n"


def write_rollout(trajectory: Trajectory, path: Path) -> None:
    """Write the document atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, dump_rollout(trajectory))


def read_bytes(path: Path, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Return all bytes of a regular file, without ever waiting for a pipe or a device.

    Args:
        path: The file.
        max_bytes: The size limit in bytes.

    Raises:
        InvalidRollout: The file is missing, not a regular file, or larger than `max_bytes`.
    """
    with file_errors(InvalidRollout, f"{path} can't be read"):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise InvalidRollout(f"{path} is not a regular file.")
    with os.fdopen(handle, "rb") as file:
        data = file.read(max_bytes + 1) if status.st_size <= max_bytes else b""
    if status.st_size > max_bytes or len(data) > max_bytes:
        raise InvalidRollout(f"{path} is larger than the limit of {max_bytes:,} bytes.")
    return data


def _strict(data: bytes) -> Any:
    return from_json(data, allow_inf_nan=False, cache_strings="none")


def parse_json(data: bytes, read: Callable[[bytes], Any] = _strict, name: str = "The document") -> Any:
    """Return the value of a JSON document, which error messages refer to by a name.

    Raises:
        InvalidRollout: The document is not JSON (NaN is not JSON), is nested too deeply, or has too many values.
    """
    if count_marks(data) > MAX_MARKS:
        raise InvalidRollout(f"{name} contains more than {MAX_MARKS:,} values.")
    hint = "NaN, Infinity and unpaired surrogates are not JSON either." if read is _strict else None
    with file_errors(InvalidRollout, f"{name} is not JSON", hint, ValueError):
        return read(data)


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
    return next(_validation_problems(error, ""))


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
        yield from _validation_problems(error, at)


def _validation_problems(error: ValidationError, at: str) -> Iterator[Problem]:
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
        return f"must be {context['expected']}, not {_shown(value)}"
    if kind in _WANTED:
        return f"{_WANTED[kind]} is expected here, not {_type_of(value)}"
    if kind == "greater_than_equal":
        return f"must be {plain(context['ge'])} or more, not {_shown(value)}"
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
