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
    """constant: at most one distinct value; boolean: true and false; number_as_text: at least ten distinct texts,
    nearly all of them a number, perhaps with a currency before it or a unit after it; text: prose; category: other
    texts."""
    distinct: Count
    """Number of distinct values in the training table, without missing ones."""
    sentinel: float | None = None
    """The number that stands for a missing value: repeated, and far from all other values."""
    relation: Literal["none", "monotone", "nonmonotone", "values"] = "none"
    """How the column alone predicts the target. Numbers: monotone if their order is about as predictive as their
    ranges, nonmonotone if it is much less so. Booleans and texts: by their values, parts, words or lengths."""
    like: Name | None = None
    """Another numeric feature whose rank correlation with this one is above 0.9 or below -0.9, if there is one."""
    drift: Share | None = None
    """The distance between the distributions in the training and the test table, if they differ. For numbers, dates and
    the length of prose: the largest difference between the shares of values up to some value (Kolmogorov-Smirnov); for
    others: the largest difference between the shares of a value."""
    actions: list[Action] = Field(default=[], max_length=3)
    """Changes before training."""
    center: float | None = None
    """For add_distance."""


class EdaAnalysis(Document):
    """Table contents, predictive features, differences in the test set, and changes to make before training."""

    columns: list[Column] = Field(max_length=MAX_ITEMS)
    """All features."""

    def _agrees_with_itself(self) -> None:
        for entry in self.columns:
            name = entry.column[:60]
            once(entry.actions, f"actions of {name}")
            if entry.sentinel is None and "mark_missing" in entry.actions:
                raise ValueError(f"`mark_missing` of {name!r}, which has no sentinel")
            if entry.type != "number_as_text" and "to_number" in entry.actions:
                raise ValueError(f"`to_number` of {name!r}, whose type is not `number_as_text`")
            if (entry.relation != "nonmonotone" or entry.center is None) and "add_distance" in entry.actions:
                raise ValueError(f"`add_distance` of {name!r}, which has no `nonmonotone` relation or no center")


def recommend(document: EdaAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    known = [entry for entry in document.columns if entry.column in dataset.features]
    lines = [
        f"{action}: {', '.join(f'`{entry.column}`' for entry in known if action in entry.actions)}"
        for action in ACTIONS
        if any(action in entry.actions for entry in known)
    ]
    return lines or ["change nothing before training"]
