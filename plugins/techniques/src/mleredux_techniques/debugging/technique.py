"""The technique `debugging`."""

from __future__ import annotations

from mleredux.plugin.task import Task

from mleredux_techniques._kit.declaration.package import declared


def _reason(base: Task, planted: bool) -> str | None:
    return None if planted else f"it has no script; ask debugging+planted-1@{base.id}"


technique = declared(
    __package__,
    version="2",
    title="Debugging: the faults of a training script, and its repair",
    reason=_reason,
)
