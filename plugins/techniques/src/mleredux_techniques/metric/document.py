"""`metric_analysis.json`."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.judging.postprocessing import Step
from mleredux_techniques._kit.vocabulary.document import Document, Name, Share, once

Ignored = Literal["sharpening", "class_weights", "shift", "scale", "order_preserving"]
MOST_STEPS = 3


class MetricAnalysis(Document):
    """Properties of the competition's metric, and the post-processing of the given predictions."""

    asks: Literal["probabilities", "labels", "numbers"]
    """The predictions that are scored: probabilities (or scores) of classes, classes, or numbers."""
    better: Literal["higher", "lower"]
    ignores: list[Ignored] = Field(max_length=5)
    """Changes to the predictions that never affect the score."""
    constant: float | dict[Name, Share]
    """The best constant prediction: a number, or the share of each class (1 for one class if the metric requires
    labels)."""
    constant_score: float
    """Its score on the rows of predictions.csv."""
    score: float
    """The score of the predictions in predictions.csv, unchanged."""
    improve: list[Step] = Field(max_length=len(get_args(Step)))
    """The steps that, applied alone, improve this score by more than three standard errors: among temperature, sigmoid,
    isotonic and thresholds, or among mean, median, log_mean, scale and round."""
    steps: list[Step] = Field(min_length=1, max_length=MOST_STEPS)
    """The recommended post-processing, first step first."""

    def _agrees_with_itself(self) -> None:
        once(self.ignores, "ignores")
        once(self.improve, "improve")
        if (self.asks == "numbers") == isinstance(self.constant, dict):
            raise ValueError("`constant` does not match `asks`: give a number for numbers, or shares for classes")
        if isinstance(self.constant, dict) and abs(sum(self.constant.values()) - 1) > 0.02:
            raise ValueError("`constant`: the shares of the classes do not add up to 1")
        if "none" in self.steps and len(self.steps) > 1:
            raise ValueError("`steps`: `none` can't be combined with other steps")


def recommend(document: MetricAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    return [f"post-process predictions: {', '.join(document.steps)}"]
