"""Execution of plans on the splits of a pool, and the best plan of a panel. A plan is a treatment per column."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mleredux_techniques._kit.comparison import Choice, judge
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.memory import remembered
from mleredux_techniques._kit.preprocessing import Preprocessing, Rows, matrices
from mleredux_techniques._kit.reference import MODELS, Model, loss, predict
from mleredux_techniques._kit.results import Efficacy
from mleredux_techniques._kit.splits import Pool, Split, pool

Array = np.ndarray[Any, Any]
Plan = Mapping[str, Preprocessing]

MEASURE = "held-out squared error (1: nothing learned) of a ridge and a forest"
CHOOSING_ROWS = 2_000
CHOOSING_SPLITS = 3


def compare(
    dataset: Dataset, *, naive: tuple[str, Plan], strong: tuple[str, Plan], given: tuple[str, Plan]
) -> Efficacy:
    """Score a plan between a naive and a strong one, by held-out loss; each comes with a description."""
    one = pool(dataset)
    return judge(
        *(Choice(losses(one, plan), what) for what, plan in (naive, strong, given)),
        overlap=one.overlap,
        measure=MEASURE,
        sample=one.sample,
    )


def rows_of(one: Pool, split: Split, plan: Plan) -> Rows:
    """Return the rows of a split, to be converted to matrices."""
    dataset = one.dataset
    return Rows(
        train=one.frame.iloc[split.train],
        held_out=one.frame.iloc[split.held_out],
        columns={name: dataset.kinds[name] for name in dataset.features},
        codes=one.codes[split.train],
        classes=dataset.problem != "regression",
        seed=split.seed,
        how=dict(plan),
    )


def losses(one: Pool, plan: Plan, models: Sequence[Model] = MODELS) -> Array:
    """Return the mean loss of the models for each split, of shape (splits,)."""
    told = sorted((name, repr(how)) for name, how in plan.items())
    key = f"losses {len(one.frame)} {len(one.splits)} {models} {told}"
    return remembered(one.dataset, key, lambda: np.array([_loss(one, split, plan, models) for split in one.splits]))


def _loss(one: Pool, split: Split, plan: Plan, models: Sequence[Model]) -> float:
    trained, judged = matrices(rows_of(one, split, plan))
    y, truth = one.y[split.train], one.y[split.held_out]
    classes = one.dataset.problem != "regression"
    found = [
        loss(truth, predict(model, trained, y, judged, classes=classes, seed=split.seed), y.mean(axis=0))
        for model in models
    ]
    return float(np.mean(found))


def choosing_pool(dataset: Dataset) -> Pool:
    """Return splits of the training table, different from those used for scoring: the strong plan is chosen here."""
    alone = dataclasses.replace(dataset, test=dataset.train.iloc[:0], time=None, sample="")
    return pool(alone, max_rows=CHOOSING_ROWS, count=CHOOSING_SPLITS)


def choose(dataset: Dataset, panel: Mapping[str, Plan], models: Sequence[Model] = MODELS) -> str:
    """Return the name of the panel's plan with the smallest mean loss within the training table."""
    if len(panel) == 1:
        return next(iter(panel))

    def find() -> str:
        one = choosing_pool(dataset)
        told = {
            name: np.mean([_loss(one, split, plan, models) for split in one.splits]) for name, plan in panel.items()
        }
        return min(told, key=lambda name: float(told[name]))

    return remembered(dataset, f"strong {sorted(panel)}", find)
