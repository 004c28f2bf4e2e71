"""The technique `encoding`."""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared, without_table
from mleredux_techniques._kit.declaration.spec import WITH_TABLES
from mleredux_techniques._kit.vocabulary.recommendation import by_choice
from mleredux_techniques.encoding.document import EncodingAnalysis


def _recommend(document: EncodingAnalysis, dataset: Dataset) -> list[str]:
    return by_choice(((item.column, item.encoding) for item in document.features), dataset)


technique = declared(
    __package__,
    version="7",
    title="Encoding: feature types and their encodings",
    categories=WITH_TABLES,
    document=EncodingAnalysis,
    recommend=_recommend,
    reason=without_table("categorical features to encode"),
)
