"""Execution of plans on the splits of a pool, and choice of the best plan. A plan is a treatment per column."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance, remembered
from mleredux_techniques._kit.data.splits import Pool, Split, parts_of, pool, pool_of
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference, judge
from mleredux_techniques._kit.judging.marks import Efficacy
from mleredux_techniques._kit.judging.reference import MODELS, Model, predict
from mleredux_techniques._kit.judging.scorer import scorer
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing, Rows, matrices

Plan = Mapping[str, Preprocessing]
"""Maps column names to treatments; other columns get the default treatment."""
Option = TypeVar("Option")

_EVERY = slice(None)
CHOOSING_ROWS = 1_200
QUICK: tuple[Model, ...] = ("linear", "neighbors")
QUICK_ROWS = 800
TIED = 0.5
"""Choices count as equally good if their mean losses differ by at most this number of standard errors."""


def _leaving(name: str) -> None:
    text = f"{name} will be removed from mleredux_techniques.kit in 0.4; subclass OfColumns, OnRows or Study instead."
    warnings.warn(text, DeprecationWarning, stacklevel=3)


def compare(
    instance: Instance,
    *,
    naive: tuple[str, Plan],
    strong: tuple[str, Plan],
    given: tuple[str, Plan],
    models: Sequence[Model] = MODELS,
) -> Efficacy:
    """Score a plan between a naive and a strong one with the competition's metric; each comes with a description.

    It will be removed in 0.4.
    """
    _leaving("compare")
    data, metric = pool(instance.dataset), scorer(instance.dataset, instance.base)
    choices = [Choice(losses(instance, data, plan, models), what) for what, plan in (naive, strong, given)]
    return judge(*choices, overlap=data.overlap, scorer=metric, sample=data.sample)


def gap(instance: Instance, naive: Plan, strong: Plan) -> Difference:
    """Return a quick estimate of a strong plan's gain over a naive one: on few splits, with two of the models.

    It will be removed in 0.4.
    """
    _leaving("gap")
    data = pool(instance.dataset, max_rows=QUICK_ROWS, repeats=1)
    return difference(losses(instance, data, naive, QUICK), losses(instance, data, strong, QUICK), data.overlap)


def choose(instance: Instance, panel: Mapping[str, Plan], models: Sequence[Model] = MODELS) -> str:
    """Return the name of the panel's best plan on the choosing pool; the first among equally good ones.

    It will be removed in 0.4.
    """
    _leaving("choose")
    data = choosing_pool(instance)
    return best_of(panel, lambda name: losses(instance, data, panel[name], models), data.overlap)


def rows_of(data: Pool, split: Split, plan: Plan) -> Rows:
    """Return the rows of a split, ready to be converted to matrices."""
    dataset = data.dataset
    return Rows(
        train=data.frame.iloc[split.train],
        held_out=data.frame.iloc[split.held_out],
        columns={name: dataset.kinds[name] for name in dataset.features},
        codes=data.codes[split.train],
        classes=dataset.problem != "regression",
        seed=split.seed,
        how=dict(plan),
    )


def losses(instance: Instance, data: Pool, plan: Plan, models: Sequence[Model] = MODELS) -> Array:
    """Return the loss of the best model for each split, of shape (splits,): the metric, negated if higher is better."""
    steps = sorted((name, repr(how)) for name, how in plan.items())
    return by_split(data, f"{models} {steps}", lambda split: loss(instance, data, split, plan, models))


def by_split(data: Pool, key: str, find: Callable[[Split], Array]) -> Array:
    """Return the loss of the best model for each split, computed once per key.

    Args:
        find: Returns the losses of all models for a split.
    """
    seeds = [split.seed for split in data.splits]
    named = f"losses {len(data.frame)} {seeds} {key}"
    return remembered(data.dataset, named, lambda: of_best([find(split) for split in data.splits], data.dataset))


def of_best(by_model: Sequence[Array], dataset: Dataset) -> Array:
    """Return the losses of the model with the smallest mean loss, since no one would use the others. Planted data
    addresses models of all families, so for it the mean over the models is returned.

    Args:
        by_model: The losses of all models for each split.
    """
    stacked = np.array(by_model)
    return np.asarray(stacked.mean(axis=1) if dataset.planted else stacked[:, int(stacked.mean(axis=0).argmin())])


def loss(instance: Instance, data: Pool, split: Split, plan: Plan, models: Sequence[Model]) -> Array:
    """Return the losses of the models for one split."""
    return split_losses(instance, data, split, predicted(data, split, matrices(rows_of(data, split, plan)), models))


def predicted(
    data: Pool, split: Split, x: tuple[Array, Array], models: Sequence[Model] = MODELS, weights: Array | None = None
) -> list[Array]:
    """Return the predictions of a split's held-out rows by each model.

    Args:
        x: The features of the split's training and held-out rows.
        weights: As in `predict`.
    """
    classes, y = data.dataset.problem != "regression", data.y[split.train]
    options: dict[str, Any] = {"classes": classes, "seed": split.seed, "weights": weights}
    return [predict(model, x[0], y, x[1], **options) for model in models]


def restored(data: Pool, predictions: Array, rows: Array | slice = _EVERY) -> Array:
    """Convert standardized numbers to their unit, clipped to the range of some rows; probabilities stay unchanged."""
    if data.dataset.problem != "regression":
        return predictions
    known = data.codes[rows]
    numbers = predictions * (data.codes.std() + 1e-12) + data.codes.mean()
    return np.asarray(np.clip(numbers, known.min(), known.max()))


def across(dataset: Dataset) -> Pool:
    """Return a pool whose only split has the training and the private test rows."""
    places = np.arange(len(dataset.train) + len(dataset.test))
    return pool_of(dataset, dataset.rows, Split(places[: len(dataset.train)], places[len(dataset.train) :], 0))


def split_losses(instance: Instance, data: Pool, split: Split, predictions: Sequence[Array]) -> Array:
    """Return the losses of predictions of a split's held-out rows, one array of predictions per model.

    Predicted numbers are clipped to the range of the training rows.
    """
    frame, truth = data.frame.iloc[split.held_out], data.codes[split.held_out]
    metric = scorer(instance.dataset, instance.base)
    return np.array([metric.loss(frame, truth, restored(data, prediction, split.train)) for prediction in predictions])


def by_part(instance: Instance, data: Pool, split: Split, of_models: Sequence[Array], most: int = 10) -> Array:
    """Return losses on parts of a split's held-out rows for each of several predictions, shape (parts, predictions)."""
    parts = parts_of(len(split.held_out), most)
    splits = [(part, replace(split, held_out=split.held_out[part])) for part in parts]
    return np.array([split_losses(instance, data, own, [values[part] for values in of_models]) for part, own in splits])


def choosing_pool(instance: Instance) -> Pool:
    """Return splits of the training rows other than those used for scoring; the strong choice is selected on them."""
    return pool(instance.dataset, max_rows=CHOOSING_ROWS, repeats=1, seed=7)


def best_of(names: Mapping[str, Option], losses_of: Callable[[str], Array], overlap: float) -> str:
    """Return the first choice whose mean loss is within half a standard error of the smallest.

    This is the standard error rule of L. Breiman et al., "Classification and Regression Trees" (1984), section 3.4.3,
    for paired losses.

    Args:
        names: The choices, simplest first.
        losses_of: Returns the losses of a choice, one per split.
        overlap: Ratio of held-out rows to training rows of a split.
    """
    if len(names) == 1:
        return next(iter(names))
    by_name = {name: losses_of(name) for name in names}
    best = min(by_name.values(), key=lambda values: float(values.mean()))
    return next(name for name, values in by_name.items() if difference(values, best, overlap).ratio <= TIED)
