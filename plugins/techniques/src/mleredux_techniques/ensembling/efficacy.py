"""Efficacy of blends: the competition's metric of weighted predictions on the private test.

Strong: greedy selection with replacement (R. Caruana et al., "Ensemble Selection from Libraries of Models", 2004).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Dataset, Instance
from mleredux_techniques._kit.data.memory import remembered
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference, judge
from mleredux_techniques._kit.judging.postprocessing import Known
from mleredux_techniques._kit.judging.predictions import KEY, each_model, known_of, of_test, out_of_fold, table
from mleredux_techniques._kit.judging.results import Efficacy
from mleredux_techniques._kit.judging.scorer import Scorer, scorer
from mleredux_techniques.ensembling.document import EnsemblingAnalysis
from mleredux_techniques.ensembling.facts import describe, losses

ROUNDS = 12
_MEASURE = "{metric} of the blend on parts of the private test"
Models = dict[str, Known]


def files(dataset: Dataset) -> dict[str, str]:
    """Return the public files."""
    ours, theirs = _predictions(dataset)
    return {"predictions.csv": table(dataset, ours), "test_predictions.csv": table(dataset, theirs, test=True)}


def reference(instance: Instance) -> dict[str, Any]:
    """Return the predictions, the facts, and the weights of the strong choice."""
    held, ours, theirs, metric = _known(instance)
    facts = remembered(instance.dataset, "ensembling", lambda: describe(ours, theirs, metric))
    return {**held, **facts, "strong": _greedy(ours, facts, metric)}


def measure(document: EnsemblingAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommended blend."""
    metric = scorer(instance.dataset, instance.base)
    theirs = {name: known_of(instance, name, test=True) for name in instance.truth[f"test {KEY}"]["values"]}
    given = {one.model: one.weight for one in document.models if one.model in theirs}

    def choice(weights: Mapping[str, float], what: str) -> Choice:
        return Choice(_losses(theirs, metric, weights), what)

    made = judge(
        choice(dict.fromkeys(theirs, 1.0), "equal weights"),
        choice(instance.truth["strong"], "models added one by one"),
        choice(given, f"the given weights of {sum(weight > 0 for weight in given.values())} models"),
        overlap=0.0, scorer=metric, measure=_MEASURE, sample=instance.dataset.sample,
    )  # fmt: skip
    return replace(made, training=None)  # judged by labels of the private test


def gap(instance: Instance) -> Difference:
    """Return what the strong blend gains over equal weights."""
    _held, ours, theirs, metric = _known(instance)
    facts = remembered(instance.dataset, "ensembling", lambda: describe(ours, theirs, metric))
    naive = _losses(theirs, metric, dict.fromkeys(theirs, 1.0))
    return difference(naive, _losses(theirs, metric, _greedy(ours, facts, metric)), 0.0)


def _predictions(dataset: Dataset) -> tuple[dict[str, Any], dict[str, Any]]:
    test = remembered(dataset, f"test {KEY}", lambda: of_test(dataset))
    return each_model(out_of_fold(dataset), dataset), each_model(test, dataset)


def _known(instance: Instance) -> tuple[dict[str, Any], Models, Models, Scorer]:
    dataset = instance.dataset
    held = dict(zip((KEY, f"test {KEY}"), _predictions(dataset), strict=True))
    at = Instance(dataset, held, instance.base)
    ours, theirs = ({name: known_of(at, name, test=test) for name in held[KEY]["values"]} for test in (False, True))
    return held, ours, theirs, scorer(dataset, instance.base)


def _blend(models: Models, weights: Mapping[str, float]) -> np.ndarray[Any, Any]:
    return np.asarray(sum(weight * models[name].told for name, weight in weights.items()) / sum(weights.values()))


def _losses(models: Models, metric: Scorer, weights: Mapping[str, float]) -> np.ndarray[Any, Any]:
    if not sum(weights.values()):
        raise ValueError("no known model has a weight")
    return losses(metric, next(iter(models.values())), _blend(models, weights))


def _greedy(models: Models, facts: dict[str, Any], metric: Scorer) -> dict[str, float]:
    """Return how often each model was added, as long as that improves the score on the training rows."""
    usable = [name for name, one in facts["models"].items() if not one["optimistic"]] or list(models)
    known = models[usable[0]]
    chosen: dict[str, float] = {}
    best = np.inf
    for _ in range(ROUNDS):
        options = [{**chosen, name: chosen.get(name, 0.0) + 1} for name in usable]
        lost = [metric.loss(known.frame, known.codes, _blend(models, option)) for option in options]
        if min(lost) >= best:
            break
        best, chosen = min(lost), options[int(np.argmin(lost))]
    return chosen
