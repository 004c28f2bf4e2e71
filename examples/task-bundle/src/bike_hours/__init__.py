"""Plugin that registers a task."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_tasks() -> Iterable[Ref]:
    """Return the task, which is imported on use."""
    return [Ref("bike-hours", "bike_hours.task:task")]
