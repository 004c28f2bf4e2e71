"""The technique `scaling`."""

from __future__ import annotations

from pathlib import Path

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.recommendation import by_choice
from mleredux_techniques._kit.spec import TechniqueSpec
from mleredux_techniques.scaling import efficacy, facts, instances
from mleredux_techniques.scaling.document import ScalingAnalysis


def _recommend(document: ScalingAnalysis, dataset: Dataset) -> list[str]:
    return by_choice(((item.column, item.scaler) for item in document.features), dataset)


technique = TechniqueSpec(
    id="scaling",
    version="3",
    title="Scaling: which features need it, and how",
    folder=Path(__file__).parent,
    document=ScalingAnalysis,
    tolerances=facts.TOLERANCES,
    truth=facts.truth,
    assess=facts.assess,
    measure=efficacy.measure,
    gap=efficacy.gap,
    recommend=_recommend,
    plant=instances.plant,
)
