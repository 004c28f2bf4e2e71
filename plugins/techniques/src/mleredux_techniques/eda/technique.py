"""The technique `eda`."""

from __future__ import annotations

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques.eda.document import ACTIONS, EdaAnalysis


def _recommend(document: EdaAnalysis, dataset: Dataset) -> list[str]:
    known = [one for one in document.columns if one.column in dataset.features]
    lines = [
        f"{action}: {', '.join(f'`{one.column}`' for one in known if action in one.actions)}"
        for action in ACTIONS
        if any(action in one.actions for one in known)
    ]
    return lines or ["change nothing before training"]


technique = declared(
    __package__,
    version="3",
    title="Exploratory analysis: types, distributions, relations and drift",
    document=EdaAnalysis,
    images=True,
    recommend=_recommend,
)
