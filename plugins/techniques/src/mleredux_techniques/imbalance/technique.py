"""The technique `imbalance`."""

from __future__ import annotations

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.declaration import declared, of_numbers
from mleredux_techniques._kit.recommendation import spelled
from mleredux_techniques.imbalance.document import ImbalanceAnalysis


def _recommend(document: ImbalanceAnalysis, dataset: Dataset) -> list[str]:
    return [spelled(document.strategies[0], {*dataset.classes})]


technique = declared(
    __package__,
    version="4",
    title="Class imbalance: severity and countermeasures",
    document=ImbalanceAnalysis,
    images=True,
    recommend=_recommend,
    reason=of_numbers,
)
