"""Names of the variants `+debug-N`: a task with a sample of its rows, whose scores must not be mixed with others."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mleredux.errors import DataError

_NAME = re.compile(r"(?P<base>.+?)(?P<mark>[+-])debug-(?P<rows>[1-9][0-9]{0,8})")


def sample_name(task: str, rows: int) -> str:
    """Return the id of a task's sample with this many rows."""
    return variant_name(task, f"debug-{rows}")


def variant_name(task: str, variant: str) -> str:
    """Return the id of a task's variant, `wine+debug-200`; for a variant of a variant, `titanic+fixed-debug-200`."""
    return f"{task}{'-' if '+' in task.rpartition('@')[2] else '+'}{variant}"


def is_sample(task: str) -> bool:
    """Return whether a task, or the base of a technique task, is a sample, whose scores can't be compared with other
    tasks."""
    return sampled(task.rpartition("@")[2]) is not None


def sampled(name: str) -> tuple[str, int] | None:
    """Return the task and the number of rows in the id of a sample; None for other ids."""
    match = _NAME.fullmatch(name)
    if match is None or (match["mark"] == "-") != ("+" in match["base"]):
        return None
    return match["base"], int(match["rows"])


def refuse_mixed(tasks: Iterable[str], what: str) -> None:
    """Check that samples and whole tasks are not mixed.

    Raises:
        DataError: Samples and whole tasks are mixed.
    """
    named = list(tasks)
    samples = [task for task in named if is_sample(task)]
    if samples and len(samples) < len(named):
        whole = next(task for task in named if not is_sample(task))
        raise DataError(
            f"{what} can't mix debug samples with whole tasks: {samples[0]} and {whole}.",
            hint="Scores on a sample can't be compared with others; use only samples, or none.",
        )
