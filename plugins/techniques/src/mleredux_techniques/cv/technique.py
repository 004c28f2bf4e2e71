"""The technique `cv`."""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.vocabulary.recommendation import spelled
from mleredux_techniques.cv.document import CvAnalysis


def _recommend(document: CvAnalysis, dataset: Dataset) -> list[str]:
    return [spelled(document.method, {*dataset.ids, *dataset.features})]


technique = declared(
    __package__,
    version="9",
    title="Cross-validation: an estimate that the private test confirms",
    document=CvAnalysis,
    images=True,
    recommend=_recommend,
)
