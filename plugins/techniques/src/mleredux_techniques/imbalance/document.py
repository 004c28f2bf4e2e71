"""`imbalance_analysis.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS, Count, Document, Name, Part
from mleredux_techniques._kit.vocabulary.recommendation import spelled

Severity = Literal["balanced", "mild", "moderate", "severe", "extreme"]
SEVERITIES: tuple[tuple[float, Severity], ...] = (
    (1.5, "balanced"),
    (3.0, "mild"),
    (10.0, "moderate"),
    (100.0, "severe"),
    (float("inf"), "extreme"),
)
"""Upper bounds (exclusive) of the ratio of the largest class to the smallest, and their names."""


def severity_of(ratio: float) -> Severity:
    """Return the name of a ratio of the largest class to the smallest."""
    return next(word for bound, word in SEVERITIES if ratio < bound)


SamplingStrategy = (
    Literal["auto", "minority", "majority", "not minority", "not majority", "all"] | Annotated[float, Field(gt=0, le=1)]
)
"""As in imbalanced-learn: the classes to resample or, for two classes only, the desired ratio of minority to majority
rows.
"""


class NoStrategy(Part):
    """Train on the unchanged data."""

    name: Literal["none"]


class ClassWeight(Part):
    """`class_weight` of scikit-learn's classifiers."""

    name: Literal["class_weight"]
    class_weight: Literal["balanced"] | dict[Name, Annotated[float, Field(ge=0)]] = "balanced"


class RandomSampler(Part):
    """imblearn.over_sampling.RandomOverSampler or imblearn.under_sampling.RandomUnderSampler."""

    name: Literal["RandomOverSampler", "RandomUnderSampler"]
    sampling_strategy: SamplingStrategy = "auto"


class SMOTE(Part):
    """imblearn.over_sampling.SMOTE."""

    name: Literal["SMOTE"]
    sampling_strategy: SamplingStrategy = "auto"
    k_neighbors: Annotated[int, Field(ge=1, le=50)] = 5


class TunedThresholdClassifierCV(Part):
    """sklearn.model_selection.TunedThresholdClassifierCV, for any number of classes.

    Each class's predicted probability is divided by its share of the training rows to a power from 0 to 2, which is
    tuned on inner folds; the largest is predicted. With two classes, this is a threshold.
    """

    name: Literal["TunedThresholdClassifierCV"]
    scoring: Literal["balanced_accuracy", "f1", "accuracy"] = "balanced_accuracy"


ImbalanceStrategy = Annotated[
    NoStrategy | ClassWeight | RandomSampler | SMOTE | TunedThresholdClassifierCV, Field(discriminator="name")
]


class ImbalanceAnalysis(Document):
    """Class distribution, severity, and recommended strategies."""

    target: Name
    """The column of classes in the training table."""
    class_counts: dict[Name, Count] = Field(min_length=1, max_length=MAX_ITEMS)
    """Number of training rows of each class, by the class's value as text."""
    majority_class: Name
    """The most frequent class."""
    minority_class: Name
    """The least frequent class."""
    imbalance_ratio: Annotated[float, Field(ge=1)]
    """Number of rows of the most frequent class divided by that of the least frequent one."""
    severity: Severity
    """By the ratio: balanced below 1.5, mild below 3, moderate below 10, severe below 100, else extreme."""
    strategies: list[ImbalanceStrategy] = Field(min_length=1, max_length=3)
    """Recommended strategies, best first; the first one is executed."""

    def _agrees_with_itself(self) -> None:
        counts = self.class_counts
        for field in ("majority_class", "minority_class"):
            if getattr(self, field) not in counts:
                raise ValueError(f"{field} is not among class_counts")
        if counts[self.majority_class] < max(counts.values()) or counts[self.minority_class] > min(counts.values()):
            raise ValueError("majority_class or minority_class contradicts class_counts")
        if min(counts.values()) > 0:
            ratio = max(counts.values()) / min(counts.values())
            if abs(self.imbalance_ratio - ratio) > 0.05 * ratio:
                raise ValueError("imbalance_ratio contradicts class_counts")
        if self.severity not in {severity_of(self.imbalance_ratio / near) for near in (0.98, 1.02)}:
            raise ValueError("severity contradicts imbalance_ratio")


def recommend(document: ImbalanceAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    return [spelled(document.strategies[0], {*dataset.classes})]
