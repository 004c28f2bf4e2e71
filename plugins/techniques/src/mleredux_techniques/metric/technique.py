"""The technique `metric`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.spec import TechniqueSpec
from mleredux_techniques.metric import efficacy, facts, instances
from mleredux_techniques.metric.document import MetricAnalysis


def _truth(dataset: Dataset) -> dict[str, Any]:
    """All facts are found by the grader (`efficacy.reference`)."""
    return {}


def _recommend(document: MetricAnalysis, dataset: Dataset) -> list[str]:
    return [f"post-process predictions: {', '.join(document.steps)}"]


technique = TechniqueSpec(
    id="metric",
    version="1",
    title="Metric: what it rewards, and the post-processing of predictions",
    folder=Path(__file__).parent,
    document=MetricAnalysis,
    tolerances=facts.TOLERANCES,
    truth=_truth,
    reference=efficacy.reference,
    files=efficacy.files,
    assess=facts.assess,
    measure=efficacy.measure,
    gap=efficacy.gap,
    recommend=_recommend,
    plant=instances.plant,
)
