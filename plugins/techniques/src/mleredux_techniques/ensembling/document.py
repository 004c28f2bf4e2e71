"""`ensembling_analysis.json`."""

from __future__ import annotations

from typing import Annotated

from mleredux.models.formats import plain
from pydantic import Field

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS, Document, Name, Part

MOST_MODELS = 50


class Member(Part):
    """One model, and its part in the blend."""

    model: Name
    """The model's name as in the columns of predictions.csv, before the space."""
    score: float
    """The metric's score of its predictions in predictions.csv."""
    optimistic: bool
    """Whether this score is too good: its predictions of the test rows are distributed differently, like those of a
    model that was fitted to the rows of predictions.csv."""
    weight: Annotated[float, Field(ge=0, le=1)]
    """Its weight in the blend; 0 to omit the model."""


class EnsemblingAnalysis(Document):
    """The value of several models' predictions, and how to blend them."""

    models: list[Member] = Field(max_length=MOST_MODELS)
    """Every model, each once."""
    copies: list[Annotated[list[Name], Field(min_length=2, max_length=2)]] = Field(max_length=MAX_ITEMS)
    """Pairs of models with (nearly) the same predictions: a correlation above 0.995 over all columns."""

    def _agrees_with_itself(self) -> None:
        if self.models and not sum(model.weight for model in self.models):
            raise ValueError("all weights are 0")
        if unknown := {name for pair in self.copies for name in pair} - {model.model for model in self.models}:
            raise ValueError(f"`copies` contains {min(unknown)[:60]!r}, which is not in `models`")


def recommend(document: EnsemblingAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    used = [(place, model.weight) for place, model in enumerate(document.models, start=1) if model.weight]
    return [f"weight of model {place}: {plain(weight, 3)}" for place, weight in used]
