"""The technique `imbalance`."""

from __future__ import annotations

from mleredux.plugin.task import Task

from mleredux_techniques._kit.data.columns import AREAS
from mleredux_techniques._kit.declaration.package import declared, of_numbers


def _reason(base: Task, planted: bool) -> str | None:
    if planted and base.metric.id in AREAS:
        return f"by {base.metric.id}, no answer to planted class ratios is better than another"
    return of_numbers(base, planted)


technique = declared(
    __package__,
    version="7",
    title="Class imbalance: severity and countermeasures",
    images=True,
    reason=_reason,
)
