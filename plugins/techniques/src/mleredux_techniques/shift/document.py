"""`shift_analysis.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS, Document, Name, Part, Share, once


class ShiftedFeature(Part):
    """A feature, and its drift from the training table to the test table."""

    column: Name
    distance: Share
    """Distance between the training and the test table: for numbers the Kolmogorov-Smirnov statistic, without missing
    values; for booleans and texts the total variation distance, with missing values as a separate value."""
    broken: bool
    """Whether its relation with the target in the training rows does not hold in the test rows, so that using it does
    harm. A feature may also drift because the target does, or without being predictive; such features are not
    broken."""


class ShiftAnalysis(Document):
    """The differences between training and test, and how to handle them."""

    features: list[ShiftedFeature] = Field(max_length=MAX_ITEMS)
    """Every feature, each once, except texts with more than 50 distinct values."""
    target: float | dict[Name, Share]
    """The expected target of the test rows: the mean of a numeric target, or the share of each class."""
    changes: Name | None
    """The feature along which the relation of others with the target changes within the training rows, so that rows
    with smaller values of it are misleading; null if there is none."""
    drop: list[Name] = Field(max_length=MAX_ITEMS)
    """Features to withhold from models."""
    weights: Literal["none", "covariate", "target"]
    """The weights of the training rows."""
    recent: Annotated[float, Field(gt=0, le=1)]
    """The share of the training rows to use, those with the largest values of the feature `changes`; 1 for all."""

    def _agrees_with_itself(self) -> None:
        once(self.drop, "drop")
        if isinstance(self.target, dict) and abs(sum(self.target.values()) - 1) > 0.02:
            raise ValueError("`target`: the shares of the classes do not add up to 1")
        if self.recent < 1 and self.changes is None:
            raise ValueError("`recent` contradicts `changes`: recent rows have the largest values of a feature")


def recommend(document: ShiftAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    dropped = [f"`{name}`" for name in document.drop if name in dataset.features]
    lines = [f"drop features: {', '.join(dropped) or 'none'}", f"weights of training rows: {document.weights}"]
    if document.recent < 1 and document.changes in dataset.features:
        lines.append(f"use the {document.recent:.0%} of the rows with the largest `{document.changes}`")
    return lines
