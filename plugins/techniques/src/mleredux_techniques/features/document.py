"""`features_analysis.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS, Document, Name, Part, Share

Tells = Literal["alone", "together", "nothing"]
Transform = Literal["none", "sqrt", "log1p", "rank"]
Pair = Annotated[list[Name], Field(min_length=2, max_length=2)]


class Feature(Part):
    """One feature: its relation with the target, and whether a model should get it."""

    column: Name
    strength: Share
    """How well the values alone rank the target, without missing values: the largest |2 AUC - 1| of one class against
    the rest (among classes of at least five rows), or |Spearman's correlation|. 0 for texts."""
    tells: Tells
    """Whether it is predictive of the target by itself (in any form, not only a monotone one), only together with
    another feature, or not at all."""
    keep: bool


class FeaturesAnalysis(Document):
    """The features that a model should get, and the transform of its target."""

    features: list[Feature] = Field(max_length=MAX_ITEMS)
    """Every feature, each once; one that is not listed is kept."""
    pairs: list[Pair] = Field(max_length=MAX_ITEMS)
    """Pairs of features that are more predictive together than the better of the two alone."""
    copies: list[Pair] = Field(max_length=MAX_ITEMS)
    """Pairs of numeric features with |Spearman's correlation| above 0.95."""
    skewness: float | None
    """The third standardized moment of the target; null if it is a class."""
    transform: Transform
    """The transformed target that models predict instead of a numeric target; `none` for classes."""

    def _agrees_with_itself(self) -> None:
        if self.skewness is None and self.transform != "none":
            raise ValueError("`transform` must be `none` if the target is a class, which has no skewness")
        tells = {feature.column: feature.tells for feature in self.features}
        for pair in self.pairs:
            if "nothing" in (tells.get(pair[0]), tells.get(pair[1])):
                raise ValueError(f"`pairs`: one of {pair[0][:60]!r} and {pair[1][:60]!r} is listed as uninformative")


def recommend(document: FeaturesAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    dropped = [f"`{item.column}`" for item in document.features if not item.keep and item.column in dataset.features]
    return [f"drop features: {', '.join(dropped) or 'none'}", f"transform of the target: {document.transform}"]
