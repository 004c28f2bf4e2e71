"""For readers of agents' native logs: they are hostile input, so nothing here fails on what a value is."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mleredux._core.rollout.documents import MAX_BYTES, MAX_MARKS, InvalidRollout
from mleredux._core.submissions.validation import open_below

MAX_TEXT = 200_000
"""Characters of a text that a reader takes over; what is between its halves is left out."""


def read_below(output: Path, name: str, *, max_bytes: int = MAX_BYTES, cut: bool = False) -> bytes:
    """All bytes of a file in an agent's output folder; no link is followed, not even on the way.

    Args:
        name: Relative to the folder: `logs/x/journal.json`.
        cut: Whether a larger file is read up to the limit, as suits a log of lines, or refused.

    Raises:
        InvalidRollout: It is missing, a link or no regular file, lies behind a link, or is too large.
    """
    try:
        with open_below(output, name) as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise InvalidRollout(f"{name} {error.strerror or error}.") from error
    if len(data) > max_bytes and not cut:
        raise InvalidRollout(f"{name} is larger than the limit of {max_bytes:,} bytes.")
    return data[:max_bytes]


def read_native(output: Path, name: str, *, max_bytes: int = MAX_BYTES) -> Any:
    """The value of a JSON file in an agent's output folder: NaN and broken characters are let through.

    Raises:
        InvalidRollout: As `read_below`; or it is not JSON, or nests too deeply.
    """
    return parse_native(read_below(output, name, max_bytes=max_bytes), name)


def parse_native(data: bytes, name: str = "The log") -> Any:
    """The value of a JSON text as agents write it.

    Raises:
        InvalidRollout: It is not JSON, nests too deeply, or holds too many values.
    """
    if sum(data.count(mark) for mark in (b",", b"[", b"{")) > MAX_MARKS:
        raise InvalidRollout(f"{name} holds more than {MAX_MARKS:,} values.")
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise InvalidRollout(f"{name} is not JSON: {error}.") from None


def as_text(value: Any, limit: int = MAX_TEXT) -> str:
    """A text that any document may hold; what is no text as its JSON, None as nothing."""
    if value is None:
        return ""
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False, default=str)
        except (ValueError, RecursionError):
            value = f"({type(value).__name__})"
    if len(value) > limit:
        half = limit // 2
        value = f"{value[:half]}\n… [{len(value) - 2 * half} characters left out] …\n{value[-half:]}"
    clean: str = value.encode("utf-8", "replace").decode("utf-8")
    return clean


def as_number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_count(value: Any) -> int | None:
    """A whole number from 0 that fits 63 bits, or None."""
    number = as_number(value)
    return int(number) if number is not None and 0 <= number < 2**63 and number == int(number) else None


def as_dict(value: Any) -> dict[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The array, or an empty one."""
    return value if isinstance(value, list) else []


def as_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of an array; what else is in it is passed over."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_time(value: Any) -> str | None:
    """A step's timestamp of Unix time in seconds, or None."""
    number = as_number(value)
    try:
        return None if number is None else datetime.fromtimestamp(number, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None
