"""The technique `calibration`."""

from __future__ import annotations

from pathlib import Path

from mleredux.plugin.task import Task

from mleredux_techniques._kit.columns import REGRESSION_METRICS
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.spec import TechniqueSpec
from mleredux_techniques.calibration import efficacy, facts, instances
from mleredux_techniques.calibration.document import CalibrationAnalysis


def _refuse(base: Task, planted: bool) -> str | None:
    metric = base.metric.id
    if metric not in REGRESSION_METRICS:
        return None
    return f"calibration does not apply to {base.id}: {metric} is a regression metric."


def _recommend(document: CalibrationAnalysis, dataset: Dataset) -> list[str]:
    lines = [f"calibrate model {place}: {one.method}" for place, one in enumerate(document.models, start=1)]
    return [*lines, f"decide by {document.decision}"]


technique = TechniqueSpec(
    id="calibration",
    version="1",
    title="Calibration: trust in probabilities, and decisions by them",
    folder=Path(__file__).parent,
    document=CalibrationAnalysis,
    tolerances=facts.TOLERANCES,
    truth=facts.truth,
    reference=efficacy.reference,
    files=efficacy.files,
    assess=facts.assess,
    measure=efficacy.measure,
    gap=efficacy.gap,
    recommend=_recommend,
    plant=instances.plant,
    refuse=_refuse,
)
