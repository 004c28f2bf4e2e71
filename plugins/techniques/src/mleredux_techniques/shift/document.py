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
    """Between the training and the test table: the Kolmogorov-Smirnov statistic of a number, without missing values;
    the total variation distance of booleans and texts, whose missing values are one more value."""
    broken: bool
    """Whether its relation with the target in the training rows does not hold in the test, so that it does harm. A
    feature also drifts because the target does, or without telling anything: these are not broken."""


class ShiftAnalysis(Document):
    """The differences between training and test, and how to handle them."""

    features: list[ShiftedFeature] = Field(max_length=MAX_ITEMS)
    """Every feature, each once; no texts of more than 50 values."""
    target: float | dict[Name, Share]
    """What is expected of the test rows: the mean of a numeric target, or the share of each class."""
    changes: Name | None
    """The feature along which the relation of others with the target changes within the training rows, so that those
    with its smaller values are misleading; null if there is none."""
    drop: list[Name] = Field(max_length=MAX_ITEMS)
    """Features that models do not get."""
    weights: Literal["none", "covariate", "target"]
    """The weights of the training rows."""
    recent: Annotated[float, Field(gt=0, le=1)]
    """The share of the training rows that is used, those with the largest `changes`; 1 for all."""

    def _agrees_with_itself(self) -> None:
        once((one.column for one in self.features), "features")
        once(self.drop, "drop")
        if isinstance(self.target, dict) and abs(sum(self.target.values()) - 1) > 0.02:
            raise ValueError("target: the shares of the classes do not add up to 1")
        if self.recent < 1 and self.changes is None:
            raise ValueError("recent contradicts changes: recent rows are those with the largest values of a feature")


def recommend(document: ShiftAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    dropped = [f"`{name}`" for name in document.drop if name in dataset.features]
    lines = [f"drop features: {', '.join(dropped) or 'none'}", f"weights of training rows: {document.weights}"]
    if document.recent < 1 and document.changes in dataset.features:
        lines.append(f"use the {document.recent:.0%} of the rows with the largest `{document.changes}`")
    return lines
