"""The technique `features`."""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques.features.document import FeaturesAnalysis


def _recommend(document: FeaturesAnalysis, dataset: Dataset) -> list[str]:
    dropped = [f"`{one.column}`" for one in document.features if not one.keep and one.column in dataset.features]
    return [f"drop features: {', '.join(dropped) or 'none'}", f"transform of the target: {document.transform}"]


technique = declared(
    __package__,
    version="4",
    title="Features: which tell of the target, and the target's transform",
    document=FeaturesAnalysis,
    recommend=_recommend,
)
