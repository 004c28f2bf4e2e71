"""`calibration_analysis.json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.vocabulary.document import Document, Name, Part, Share, once

Verdict = Literal["calibrated", "overconfident", "underconfident"]
Method = Literal["none", "temperature", "sigmoid", "isotonic"]
MOST_MODELS = 20


class ClassBias(Part):
    """A class that a model predicts too often or too rarely."""

    name: Name
    side: Literal["too_often", "too_seldom"]


class ModelCalibration(Part):
    """The probabilities of one model."""

    model: Name
    """The model's name as in the columns of predictions.csv, before the space."""
    accuracy: Share
    """Share of the rows whose most probable class is correct."""
    confidence: Share
    """Mean of the largest probability of each row."""
    error: Share
    """Expected calibration error: the mean over rows of |mean confidence - accuracy| in the row's bin, with ten bins of
    equal width over the largest probability."""
    verdict: Verdict
    """Overconfident if confidence - accuracy exceeds 0.02 and three standard errors; underconfident if it is below the
    negatives of both; else calibrated."""
    classes: list[ClassBias] = Field(default=[], max_length=200)
    """Classes whose mean probability differs from their share of the rows by more than 0.02 and by more than three
    standard errors."""
    method: Method
    """The recommended calibration."""


class CalibrationAnalysis(Document):
    """How reliable probabilities are, and how to calibrate and use them."""

    models: list[ModelCalibration] = Field(max_length=MOST_MODELS)
    decision: Literal["argmax", "thresholds"]
    """How the mean of the calibrated probabilities is used: unchanged, or multiplied by the factors per class that are
    best for the metric."""

    def _agrees_with_itself(self) -> None:
        for model in self.models:
            once((item.name for item in model.classes), f"classes of {model.model[:60]}")
            gap = model.confidence - model.accuracy
            if (model.verdict == "overconfident" and gap < 0) or (model.verdict == "underconfident" and gap > 0):
                raise ValueError(f"the verdict on {model.model[:60]!r} contradicts its accuracy and confidence")
            if abs(gap) > model.error + 0.02:
                raise ValueError(f"the error of {model.model[:60]!r} is below |confidence - accuracy|")


def recommend(document: CalibrationAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    lines = [f"calibrate model {place}: {model.method}" for place, model in enumerate(document.models, start=1)]
    return [*lines, f"decide by {document.decision}"]
