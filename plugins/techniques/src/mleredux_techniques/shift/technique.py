"""The technique `shift`."""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques.shift.document import ShiftAnalysis


def _recommend(document: ShiftAnalysis, dataset: Dataset) -> list[str]:
    dropped = [f"`{name}`" for name in document.drop if name in dataset.features]
    lines = [f"drop features: {', '.join(dropped) or 'none'}", f"weights of training rows: {document.weights}"]
    if document.recent < 1 and document.changes in dataset.features:
        lines.append(f"use the {document.recent:.0%} of the rows with the largest `{document.changes}`")
    return lines


technique = declared(
    __package__,
    version="4",
    title="Shift: what differs between training and test, and what to do",
    document=ShiftAnalysis,
    private_parts=("broken", "target", "changes"),
    recommend=_recommend,
)
