"""`eda_analysis.json`."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS, Count, Document, Name, Part, Share, once

ColumnType = Literal["constant", "boolean", "number", "number_as_text", "date", "text", "category"]
Action = Literal["mark_missing", "to_number", "add_distance"]
ACTIONS: tuple[Action, ...] = get_args(Action)
"""The actions, in order of execution."""


class Column(Part):
    """The contents of one feature, its relation with the target, and the changes to make."""

    column: Name
    type: ColumnType
    """constant: at most one different value; boolean: true and false; number_as_text: at least ten different texts,
    nearly each one number with at most a currency before or a unit after it; text: prose; category: other texts."""
    distinct: Count
    """Different values in the training table, without missing ones."""
    sentinel: float | None = None
    """The number that stands for a missing value: repeated, and far from all others."""
    relation: Literal["none", "monotone", "nonmonotone", "values"] = "none"
    """How the column alone tells the target. Numbers: monotone if their order tells about as much as their ranges do,
    nonmonotone if much less. Booleans and texts: by their values, parts, words or lengths."""
    like: Name | None = None
    """Another numeric feature, if the rank correlation with it is beyond 0.9."""
    drift: Share | None = None
    """The distance of the distributions in the training and the test table, if they differ. Of numbers, dates, and the
    length of prose, the largest difference of the share of values up to one (Kolmogorov-Smirnov); of others, of the
    share of one value."""
    actions: list[Action] = Field(default=[], max_length=3)
    """Changes before training."""
    center: float | None = None
    """For add_distance."""


class EdaAnalysis(Document):
    """Table contents, predictive features, differences in the test set, and changes to make before training."""

    columns: list[Column] = Field(max_length=MAX_ITEMS)
    """All features."""

    def _agrees_with_itself(self) -> None:
        once((one.column for one in self.columns), "columns")
        for one in self.columns:
            name = one.column[:60]
            once(one.actions, f"actions of {name}")
            if one.sentinel is None and "mark_missing" in one.actions:
                raise ValueError(f"mark_missing of {name!r}, which has no sentinel")
            if one.type != "number_as_text" and "to_number" in one.actions:
                raise ValueError(f"to_number of {name!r}, whose type is not number_as_text")
            if (one.relation != "nonmonotone" or one.center is None) and "add_distance" in one.actions:
                raise ValueError(f"add_distance of {name!r}, which has no nonmonotone relation or no center")


def recommend(document: EdaAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    known = [one for one in document.columns if one.column in dataset.features]
    lines = [
        f"{action}: {', '.join(f'`{one.column}`' for one in known if action in one.actions)}"
        for action in ACTIONS
        if any(action in one.actions for one in known)
    ]
    return lines or ["change nothing before training"]
