"""The technique `ensembling`."""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques.ensembling.document import EnsemblingAnalysis


def _recommend(document: EnsemblingAnalysis, dataset: Dataset) -> list[str]:
    used = [(place, one.weight) for place, one in enumerate(document.models, start=1) if one.weight]
    return [f"weight of model {place}: {weight:.3g}" for place, weight in used]


technique = declared(
    __package__,
    version="6",
    title="Ensembling: the worth of predictions, and their blend",
    document=EnsemblingAnalysis,
    private_parts=("optimistic",),
    recommend=_recommend,
)
