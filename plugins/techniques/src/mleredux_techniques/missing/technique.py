"""The technique `missing`."""

from __future__ import annotations

from pathlib import Path

from mleredux.plugin.task import Task

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.recommendation import by_choice
from mleredux_techniques._kit.spec import WITH_TABLES, TechniqueSpec, has_table
from mleredux_techniques.missing import efficacy, facts, instances
from mleredux_techniques.missing.document import MissingAnalysis


def _refuse(base: Task, planted: bool) -> str | None:
    if planted or has_table(base):
        return None
    about = f"its category is {base.category}, so its data has no features with missing values"
    return f"missing does not apply to {base.id}: {about}."


def _recommend(document: MissingAnalysis, dataset: Dataset) -> list[str]:
    return by_choice(((item.column, item.imputation) for item in document.columns), dataset)


technique = TechniqueSpec(
    id="missing",
    version="3",
    title="Missing values: patterns, mechanisms and imputations",
    categories=WITH_TABLES,
    folder=Path(__file__).parent,
    document=MissingAnalysis,
    tolerances=facts.TOLERANCES,
    truth=facts.truth,
    assess=facts.assess,
    measure=efficacy.measure,
    gap=efficacy.gap,
    recommend=_recommend,
    plant=instances.plant,
    refuse=_refuse,
)
