"""The technique `imbalance`."""

from __future__ import annotations

from pathlib import Path

from mleredux.plugin.task import Task

from mleredux_techniques._kit.columns import REGRESSION_METRICS
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.recommendation import spelled
from mleredux_techniques._kit.spec import TechniqueSpec
from mleredux_techniques.imbalance import efficacy, facts, instances
from mleredux_techniques.imbalance.document import ImbalanceAnalysis


def _refuse(base: Task, planted: bool) -> str | None:
    metric = base.metric.id
    if metric not in REGRESSION_METRICS:
        return None
    return f"imbalance does not apply to {base.id}: {metric} is a regression metric."


def _recommend(document: ImbalanceAnalysis, dataset: Dataset) -> list[str]:
    return [spelled(document.strategies[0], {*dataset.classes})]


technique = TechniqueSpec(
    id="imbalance",
    version="3",
    title="Class imbalance: severity and countermeasures",
    folder=Path(__file__).parent,
    document=ImbalanceAnalysis,
    tolerances=facts.TOLERANCES,
    truth=facts.truth,
    assess=facts.assess,
    measure=efficacy.measure,
    gap=efficacy.gap,
    recommend=_recommend,
    plant=instances.plant,
    refuse=_refuse,
)
