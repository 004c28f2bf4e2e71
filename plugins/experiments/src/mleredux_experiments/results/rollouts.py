"""Data that rollouts add to a run's versions: the agent's own measurements, and the cost at each time."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeGuard

from mleredux.models.base import parse
from mleredux.plugin.files import open_regular
from mleredux_rollout import MAX_BYTES

from mleredux_experiments.results.table import Version


def content(path: str) -> bytes:
    """Read a regular file of at most `MAX_BYTES` bytes.

    Raises:
        OSError: As for `open_regular`.
        ValueError: It is larger.
    """
    with open_regular(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > MAX_BYTES:
            raise ValueError(f"{path} is larger than {MAX_BYTES >> 20} MiB")
        return file.read(size)


def read_rollout(path: str) -> Any:
    """Return the content of a rollout; None if there is no readable one."""
    with suppress(OSError, ValueError):
        return parse(content(path))
    return None


def with_rollout(document: Any, versions: tuple[Version, ...]) -> tuple[tuple[Version, ...], float | None]:
    """Return the versions with data from the rollout, and the agent's measurement of its last version.

    A version's measurement is that of the step that wrote it or, if steps do not name versions, the last one before it.
    An agent may write anything into a rollout, so unusable values are ignored.
    """
    try:
        steps = [step for step in document["steps"] if isinstance(step, dict)]
        kept = document["extra"]["mleredux"]["submissions"]
        start = _time(kept[0]["time"]) - float(kept[0]["seconds"])
    except (ValueError, KeyError, TypeError, IndexError):
        return versions, None
    named: dict[int, float] = {}
    measured: list[tuple[float, float]] = []
    costs: list[tuple[float, float]] = []
    spent = 0.0
    for step in steps:
        extra = own if isinstance(own := step.get("extra"), dict) else {}
        seconds = _seconds(step.get("timestamp"), start)
        cost: Any = step["metrics"].get("cost_usd") if isinstance(step.get("metrics"), dict) else None
        if seconds is not None and is_number(cost):
            spent += float(cost)
            costs.append((seconds, spent))
        if extra.get("is_buggy") is True or not is_number(extra.get("validation_metric")):
            continue
        value, version = float(extra["validation_metric"]), extra.get("submission_version")
        if isinstance(version, int):
            named[version] = value
        elif seconds is not None:
            measured.append((seconds, value))
    rated = tuple(
        replace(
            version,
            validation=named.get(number, _last(measured, version.seconds) if not named else None),
            cost_usd=(_last(costs, version.seconds) or 0.0) if costs else None,
        )
        for number, version in enumerate(versions, start=1)
    )
    return rated, rated[-1].validation if rated else None


def _last(values: list[tuple[float, float]], seconds: float) -> float | None:
    """Return the last value known at this time."""
    return max(((at, value) for at, value in values if at <= seconds), default=(seconds, None))[1]


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a finite number suitable for calculations."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _time(text: Any) -> float:
    return datetime.fromisoformat(text).timestamp()


def _seconds(text: Any, start: float) -> float | None:
    with suppress(TypeError, ValueError):
        return _time(text) - start
    return None
