"""The technique `leakage`."""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques.leakage.document import LeakageAnalysis


def _recommend(document: LeakageAnalysis, dataset: Dataset) -> list[str]:
    known = {*dataset.ids, *dataset.features}
    return [
        f"{risk.mitigation.name}: {', '.join(f'`{name}`' for name in risk.columns if name in known) or 'rows'} "
        f"({risk.kind})"
        for risk in document.risks
    ] or ["drop nothing"]


technique = declared(
    __package__,
    version="8",
    title="Leakage: why a score is too good to be true",
    document=LeakageAnalysis,
    private_parts=("risks", "mitigations"),
    images=True,
    recommend=_recommend,
)
