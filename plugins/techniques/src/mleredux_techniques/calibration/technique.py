"""The technique `calibration`."""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared, of_numbers
from mleredux_techniques.calibration.document import CalibrationAnalysis


def _recommend(document: CalibrationAnalysis, dataset: Dataset) -> list[str]:
    lines = [f"calibrate model {place}: {one.method}" for place, one in enumerate(document.models, start=1)]
    return [*lines, f"decide by {document.decision}"]


technique = declared(
    __package__,
    version="6",
    title="Calibration: trust in probabilities, and decisions by them",
    document=CalibrationAnalysis,
    recommend=_recommend,
    reason=of_numbers,
)
