"""The technique `missing`."""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared, without_table
from mleredux_techniques._kit.declaration.spec import WITH_TABLES
from mleredux_techniques._kit.vocabulary.recommendation import by_choice
from mleredux_techniques.missing.document import MissingAnalysis


def _recommend(document: MissingAnalysis, dataset: Dataset) -> list[str]:
    return by_choice(((item.column, item.imputation) for item in document.columns), dataset)


technique = declared(
    __package__,
    version="7",
    title="Missing values: patterns, mechanisms and imputations",
    categories=WITH_TABLES,
    document=MissingAnalysis,
    recommend=_recommend,
    reason=without_table("features with missing values"),
)
