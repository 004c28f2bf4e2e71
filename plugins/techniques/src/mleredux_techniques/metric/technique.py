"""The technique `metric`."""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques.metric.document import MetricAnalysis


def _recommend(document: MetricAnalysis, dataset: Dataset) -> list[str]:
    return [f"post-process predictions: {', '.join(document.steps)}"]


technique = declared(
    __package__,
    version="7",
    title="Metric: what it rewards, and the post-processing of predictions",
    document=MetricAnalysis,
    recommend=_recommend,
)
