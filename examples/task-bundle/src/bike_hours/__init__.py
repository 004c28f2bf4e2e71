"""What this package registers: a task."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_tasks() -> Iterable[Ref]:
    """The task, imported when it is used."""
    return [Ref("bike-hours", "bike_hours.task:task")]
