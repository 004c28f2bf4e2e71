"""Efficacy of post-processing: the competition's metric of given predictions, fitted and scored on different rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mleredux.errors import NotApplicable

from mleredux_techniques._kit.data.dataset import Dataset, Instance
from mleredux_techniques._kit.data.memory import remembered
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference, judge
from mleredux_techniques._kit.judging.plans import best_of
from mleredux_techniques._kit.judging.postprocessing import Known, Step, applied
from mleredux_techniques._kit.judging.predictions import (
    KEY,
    OVERLAP,
    REPEATS,
    distorted,
    known_of,
    listed,
    losses,
    out_of_fold,
    table,
)
from mleredux_techniques._kit.judging.results import Efficacy
from mleredux_techniques._kit.judging.scorer import Scorer, scorer
from mleredux_techniques.metric.document import MetricAnalysis
from mleredux_techniques.metric.facts import describe

MODEL = "model"
NAIVE: tuple[Step, ...] = ("none",)
CLASSES: tuple[tuple[Step, ...], ...] = (
    NAIVE, ("temperature",), ("sigmoid",), ("isotonic",), ("thresholds",), ("isotonic", "thresholds")
)  # fmt: skip
NUMBERS: tuple[tuple[Step, ...], ...] = (
    NAIVE, ("round",), ("scale",), ("mean",), ("median",), ("log_mean",), ("median", "round")
)  # fmt: skip
CHANCE, SURE = 1.0, 3.0
"""A step improves the score by more than so many standard errors, or may do so."""
_MEASURE = "{metric} of the given predictions after these steps, on held-out training rows"


def predictions(dataset: Dataset) -> dict[str, Any]:
    """Return the predictions of the public file: the mean of the reference models', distorted if planted."""
    found = out_of_fold(dataset)
    told = np.mean(list(found["values"].values()), axis=0)
    return listed(found["rows"], {MODEL: distorted(told, dataset.planted.get(KEY, {}), found["truth"])})


def files(dataset: Dataset) -> dict[str, str]:
    """Return the public file."""
    return {"predictions.csv": table(dataset, predictions(dataset))}


def reference(instance: Instance) -> dict[str, Any]:
    """Return the predictions, the facts, and the best of several sequences of steps.

    Raises:
        NotApplicable: The metric can't be computed for predictions of single rows.
    """
    known, metric = _known(instance)
    if metric.substitute:
        raise NotApplicable(
            f"metric does not apply to {instance.base.id}: its metric {instance.base.metric.id} can't be computed for "
            "predictions of rows of its training table."
        )
    options = {", ".join(steps): steps for steps in (NUMBERS if metric.asked == "numbers" else CLASSES)}
    told = {name: _losses(known, metric, steps, seed=7) for name, steps in options.items()}  # not the score's splits
    rough = {name: _losses(known, metric, steps, seed=8, rough=True) for name, steps in options.items()}
    gains = {
        name: [difference(one["none"], one[name], OVERLAP).ratio for one in (told, rough)]
        for name, steps in options.items()
        if len(steps) == 1
    }
    return {
        KEY: predictions(instance.dataset),
        **describe(known, metric),
        "strong": list(options[best_of(options, told.__getitem__, OVERLAP)]),
        "improve": sorted(name for name, gain in gains.items() if min(gain) > SURE),
        "unsure": sorted(name for name, gain in gains.items() if min(gain) <= SURE and max(gain) >= CHANCE),
    }


def measure(document: MetricAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommended steps."""
    known, metric = known_of(instance, MODEL), scorer(instance.dataset, instance.base)

    def choice(steps: Sequence[Step]) -> Choice:
        key = f"losses after {steps}"
        told = remembered(instance.dataset, key, lambda: _losses(known, metric, steps))
        return Choice(told, ", ".join(steps))

    return judge(
        *(choice(tuple(steps)) for steps in (NAIVE, instance.truth["strong"], document.steps)),
        overlap=OVERLAP,
        scorer=metric,
        measure=_MEASURE,
        sample=instance.dataset.sample,
    )


def gap(instance: Instance) -> Difference:
    """Return what the best of a few sequences of steps gains over none."""
    known, metric = _known(instance)
    numbers: tuple[Step, ...] = ("mean", "median", "log_mean", "scale", "round")
    few = numbers if metric.asked == "numbers" else ("sigmoid", "isotonic")
    told = min((_losses(known, metric, (step,)) for step in few), key=lambda one: float(one.mean()))
    return difference(_losses(known, metric, NAIVE), told, OVERLAP)


def _known(instance: Instance) -> tuple[Known, Scorer]:
    held = {KEY: predictions(instance.dataset)}
    known = known_of(Instance(instance.dataset, held, instance.base), MODEL)
    return known, scorer(instance.dataset, instance.base)


def _losses(
    known: Known, metric: Scorer, steps: Sequence[Step], seed: int = 0, *, rough: bool = False
) -> np.ndarray[Any, Any]:
    def carry(fit: list[Known], held: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        return applied(steps, fit[0], held[0], metric, rough=rough)

    return losses(metric, [known], carry, seed, 1 if seed else REPEATS)
