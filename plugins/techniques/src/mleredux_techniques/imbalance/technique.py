"""The technique `imbalance`."""

from __future__ import annotations

from mleredux.plugin.task import Task

from mleredux_techniques._kit.data.columns import AREAS
from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared, of_numbers
from mleredux_techniques._kit.vocabulary.recommendation import spelled
from mleredux_techniques.imbalance.document import ImbalanceAnalysis


def _recommend(document: ImbalanceAnalysis, dataset: Dataset) -> list[str]:
    return [spelled(document.strategies[0], {*dataset.classes})]


def _reason(base: Task, planted: bool) -> str | None:
    if planted and base.metric.id in AREAS:
        return f"by {base.metric.id}, no answer to planted class ratios is better than another"
    return of_numbers(base, planted)


technique = declared(
    __package__,
    version="7",
    title="Class imbalance: severity and countermeasures",
    document=ImbalanceAnalysis,
    images=True,
    recommend=_recommend,
    reason=_reason,
)
