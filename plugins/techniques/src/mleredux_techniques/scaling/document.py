"""`scaling_analysis.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS, Document, Name, Part, once
from mleredux_techniques._kit.vocabulary.scalers import Scaler

ModelFamily = Literal[
    "linear_model",
    "k_nearest_neighbors",
    "svm",
    "neural_network",
    "decision_tree",
    "random_forest",
    "gradient_boosted_trees",
]


class ScaledFeature(Part):
    """One numeric feature."""

    column: Name
    mean: float
    """Mean in the training table, without missing values."""
    std: Annotated[float, Field(ge=0)]
    """Standard deviation, computed in the same way."""
    skewed: bool
    """Whether its skewness is above 1 or below -1."""
    outliers: bool
    """Whether more than 5 % of its values are more than 1.5 interquartile ranges outside the quartiles."""
    scaler: Scaler


class ScalingAnalysis(Document):
    """The scaling of numeric features, and the models that need none."""

    features: list[ScaledFeature] = Field(max_length=MAX_ITEMS)
    """Every numeric feature (except boolean and constant ones), each once; one that is not listed stays unchanged."""
    spread: Annotated[float, Field(ge=1)]
    """The largest standard deviation of these features divided by the smallest."""
    not_needed_for: list[ModelFamily] = Field(max_length=7)
    """Families of models whose predictions don't depend on the scale of the features."""

    def _agrees_with_itself(self) -> None:
        once(self.not_needed_for, "not_needed_for")
        deviations = [feature.std for feature in self.features]
        if deviations and min(deviations) > 0:
            spread = max(deviations) / min(deviations)
            if abs(self.spread - spread) > 0.1 * spread:
                raise ValueError("`spread` contradicts the standard deviations of the features")
