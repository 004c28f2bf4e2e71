"""Efficacy of calibration: the competition's metric of the mean of calibrated predictions, on other rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from mleredux_techniques._kit.data.dataset import Dataset, Instance
from mleredux_techniques._kit.data.memory import remembered
from mleredux_techniques._kit.data.splits import class_names
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference, judge
from mleredux_techniques._kit.judging.plans import best_of
from mleredux_techniques._kit.judging.postprocessing import Known, applied
from mleredux_techniques._kit.judging.predictions import (
    KEY,
    OVERLAP,
    REPEATS,
    each_model,
    known_of,
    losses,
    out_of_fold,
    table,
)
from mleredux_techniques._kit.judging.results import Efficacy
from mleredux_techniques._kit.judging.scorer import Scorer, scorer
from mleredux_techniques.calibration.document import CalibrationAnalysis, Method
from mleredux_techniques.calibration.facts import describe

_MEASURE = "{metric} of the mean of the calibrated predictions, on held-out training rows"
Models = Mapping[str, Known]
Memory = dict[tuple[Any, ...], np.ndarray[Any, Any]]


def files(dataset: Dataset) -> dict[str, str]:
    """Return the public file."""
    return {"predictions.csv": table(dataset, each_model(out_of_fold(dataset), dataset))}


def reference(instance: Instance) -> dict[str, Any]:
    """Return the predictions, the figures of each model, and the strong choice."""
    models, metric, held = _known(instance)
    names = class_names(instance.dataset)
    method, decision = _best(models, metric)
    facts = {name: describe(known, names) for name, known in models.items()}
    return {KEY: held, "models": facts, "strong": [method, decision]}


def measure(document: CalibrationAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommended methods and decision."""
    models = {name: known_of(instance, name) for name in instance.truth[KEY]["values"]}
    metric = scorer(instance.dataset, instance.base)

    def choice(methods: Mapping[str, Method], decision: str) -> Choice:
        key = f"calibrated {sorted(methods.items())} {decision}"
        told = remembered(instance.dataset, key, lambda: _losses(models, metric, methods, decision, {}))
        said = [f"{name} for {list(methods.values()).count(name)} models" for name in sorted(set(methods.values()))]
        return Choice(told, f"{', '.join(said)}; {decision}")

    method, decision = instance.truth["strong"]
    given = {one.model: one.method for one in document.models if one.model in models}
    return judge(
        choice(dict.fromkeys(models, "none"), "argmax"),
        choice(dict.fromkeys(models, method), decision),
        choice({**dict.fromkeys(models, "none"), **given}, document.decision),
        overlap=OVERLAP, scorer=metric, measure=_MEASURE, sample=instance.dataset.sample,
    )  # fmt: skip


def gap(instance: Instance) -> Difference:
    """Return what the better of a logistic and an isotonic calibration of all models gains over none."""
    models, metric, _held = _known(instance)
    naive = _losses(models, metric, dict.fromkeys(models, "none"), "argmax", {})
    methods: tuple[Method, ...] = ("sigmoid", "isotonic")
    told = [_losses(models, metric, dict.fromkeys(models, method), "argmax", {}) for method in methods]
    return difference(naive, min(told, key=lambda one: float(one.mean())), OVERLAP)


def _known(instance: Instance) -> tuple[Models, Scorer, dict[str, Any]]:
    held = each_model(out_of_fold(instance.dataset), instance.dataset)
    at = Instance(instance.dataset, {KEY: held}, instance.base)
    return {name: known_of(at, name) for name in held["values"]}, scorer(instance.dataset, instance.base), held


def _best(models: Models, metric: Scorer) -> tuple[Method, str]:
    """Return the best method for all models and the best decision, by other splits than those of the score."""
    decisions = ("argmax", "thresholds") if metric.asked == "labels" else ("argmax",)
    options: dict[str, tuple[Method, str]] = {f"{m} {d}": (m, d) for d in decisions for m in get_args(Method)}

    memory: Memory = {}

    def told(name: str) -> np.ndarray[Any, Any]:
        method, decision = options[name]
        return _losses(models, metric, dict.fromkeys(models, method), decision, memory, seed=7)

    return options[best_of(options, told, OVERLAP)]


def _losses(
    models: Models, metric: Scorer, methods: Mapping[str, Method], decision: str, memory: Memory, seed: int = 0
) -> np.ndarray[Any, Any]:
    names = list(models)
    folds = itertools.count()

    def calibrated(name: str, known: Known, told: np.ndarray[Any, Any], fold: int) -> np.ndarray[Any, Any]:
        """Return the predictions of all rows of a split, those to fit to first: the same for every combination."""
        key = (id(models[name]), methods[name], seed, fold)
        if key not in memory:
            memory[key] = applied([methods[name]], known, np.vstack([known.told, told]), metric)
        return memory[key]

    def carry(fit: list[Known], held: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        fold = next(folds)
        made = [calibrated(name, one, told, fold) for name, one, told in zip(names, fit, held, strict=True)]
        ours, theirs = np.split(np.mean(made, axis=0), [len(fit[0].codes)])
        if decision == "argmax":
            return np.asarray(theirs)
        return applied(["thresholds"], Known(ours, fit[0].codes, fit[0].frame), theirs, metric)

    return losses(metric, [models[name] for name in names], carry, seed, 1 if seed else REPEATS)
