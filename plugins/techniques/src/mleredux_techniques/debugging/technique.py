"""The technique `debugging`."""

from __future__ import annotations

from mleredux.plugin.task import Task

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques.debugging.document import DebuggingAnalysis


def _reason(base: Task, planted: bool) -> str | None:
    return None if planted else f"it has no script; ask debugging+planted-1@{base.id}"


def _recommend(document: DebuggingAnalysis, dataset: Dataset) -> list[str]:
    return []


technique = declared(
    __package__,
    version="2",
    title="Debugging: the faults of a training script, and its repair",
    document=DebuggingAnalysis,
    recommend=_recommend,
    reason=_reason,
)
