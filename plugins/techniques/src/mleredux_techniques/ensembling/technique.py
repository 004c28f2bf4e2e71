"""The technique `ensembling`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.spec import TechniqueSpec
from mleredux_techniques.ensembling import efficacy, facts, instances
from mleredux_techniques.ensembling.document import EnsemblingAnalysis


def _truth(dataset: Dataset) -> dict[str, Any]:
    """All facts are found by the grader (`efficacy.reference`)."""
    return {}


def _recommend(document: EnsemblingAnalysis, dataset: Dataset) -> list[str]:
    used = [(place, one.weight) for place, one in enumerate(document.models, start=1) if one.weight]
    return [f"weight of model {place}: {weight:.3g}" for place, weight in used]


technique = TechniqueSpec(
    id="ensembling",
    version="1",
    title="Ensembling: the worth of predictions, and their blend",
    folder=Path(__file__).parent,
    document=EnsemblingAnalysis,
    tolerances=facts.TOLERANCES,
    truth=_truth,
    reference=efficacy.reference,
    files=efficacy.files,
    private_parts=("optimistic",),
    assess=facts.assess,
    measure=efficacy.measure,
    gap=efficacy.gap,
    recommend=_recommend,
    plant=instances.plant,
)
