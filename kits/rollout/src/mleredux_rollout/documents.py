"""Read and write ATIF documents within limits, because they come from agents."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, file_errors
from mleredux.models.base import parse
from mleredux.plugin.files import write_atomically
from pydantic import ValidationError
from pydantic_core import from_json

from mleredux_rollout.models import Trajectory
from mleredux_rollout.validation import Problem, problem_of, problems_of

MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of a document in bytes."""
MAX_MARKS = 4_000_000
"""Maximum number of commas and opening brackets in a document, which bounds its number of values."""

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
    """Return the value of a JSON document, which messages call by a name.

    Raises:
        InvalidRollout: The document is not JSON (NaN is not JSON), is nested too deeply, or has too many values.
    """
    if sum(data.count(mark) for mark in (b",", b"[", b"{")) > MAX_MARKS:
        raise InvalidRollout(f"{name} contains more than {MAX_MARKS:,} values.")
    try:
        return read(data)
    except (ValueError, RecursionError) as error:
        raise InvalidRollout(
            f"{name} is not JSON: {error}.",
            hint="NaN, Infinity and unpaired surrogates are not JSON either." if read is _strict else None,
        ) from None
