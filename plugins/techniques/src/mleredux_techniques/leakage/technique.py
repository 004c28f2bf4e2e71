"""The technique `leakage`."""

from __future__ import annotations

from pathlib import Path

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.spec import TechniqueSpec
from mleredux_techniques.leakage import efficacy, facts, instances
from mleredux_techniques.leakage.document import LeakageAnalysis


def _recommend(document: LeakageAnalysis, dataset: Dataset) -> list[str]:
    known = {*dataset.ids, *dataset.features}
    return [
        f"{risk.mitigation.name}: {', '.join(f'`{name}`' for name in risk.columns if name in known) or 'rows'} "
        f"({risk.kind})"
        for risk in document.risks
    ] or ["drop nothing"]


technique = TechniqueSpec(
    id="leakage",
    version="3",
    title="Leakage: why a score is too good to be true",
    folder=Path(__file__).parent,
    document=LeakageAnalysis,
    tolerances=facts.TOLERANCES,
    truth=facts.truth,
    assess=facts.assess,
    measure=efficacy.measure,
    recommend=_recommend,
    plant=instances.plant,
    private_parts=("risks", "mitigations"),
)
