"""The technique `encoding`."""

from __future__ import annotations

from pathlib import Path

from mleredux.plugin.task import Task

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.recommendation import by_choice
from mleredux_techniques._kit.spec import WITH_TABLES, TechniqueSpec, has_table
from mleredux_techniques.encoding import efficacy, facts, instances
from mleredux_techniques.encoding.document import EncodingAnalysis


def _refuse(base: Task, planted: bool) -> str | None:
    if planted or has_table(base):
        return None
    about = f"its category is {base.category}, so its data has no categorical features to encode"
    return f"encoding does not apply to {base.id}: {about}."


def _recommend(document: EncodingAnalysis, dataset: Dataset) -> list[str]:
    return by_choice(((item.column, item.encoding) for item in document.features), dataset)


technique = TechniqueSpec(
    id="encoding",
    version="3",
    title="Encoding: feature types and their encodings",
    categories=WITH_TABLES,
    folder=Path(__file__).parent,
    document=EncodingAnalysis,
    tolerances=facts.TOLERANCES,
    truth=facts.truth,
    assess=facts.assess,
    measure=efficacy.measure,
    gap=efficacy.gap,
    recommend=_recommend,
    plant=instances.plant,
    refuse=_refuse,
)
