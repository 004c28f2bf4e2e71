"""The technique `cv`."""

from __future__ import annotations

from pathlib import Path

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.recommendation import spelled
from mleredux_techniques._kit.spec import TechniqueSpec
from mleredux_techniques.cv import efficacy, facts, instances
from mleredux_techniques.cv.document import CvAnalysis


def _recommend(document: CvAnalysis, dataset: Dataset) -> list[str]:
    return [spelled(document.method, {*dataset.ids, *dataset.features})]


technique = TechniqueSpec(
    id="cv",
    version="3",
    title="Cross-validation: an estimate that the private test confirms",
    folder=Path(__file__).parent,
    document=CvAnalysis,
    tolerances=facts.TOLERANCES,
    truth=facts.truth,
    assess=facts.assess,
    measure=efficacy.measure,
    gap=efficacy.gap,
    recommend=_recommend,
    plant=instances.plant,
)
