"""The technique `scaling`."""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.vocabulary.recommendation import by_choice
from mleredux_techniques.scaling.document import ScalingAnalysis


def _recommend(document: ScalingAnalysis, dataset: Dataset) -> list[str]:
    return by_choice(((item.column, item.scaler) for item in document.features), dataset)


technique = declared(
    __package__,
    version="6",
    title="Scaling: which features need it, and how",
    document=ScalingAnalysis,
    recommend=_recommend,
)
