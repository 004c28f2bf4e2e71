"""Calibration: how well models' probabilities agree with outcomes, and the value of calibrating them.

The measure is the competition's metric for the mean of calibrated predictions, on other rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, get_args

import numpy as np

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance, need_classes, remembered
from mleredux_techniques._kit.data.splits import class_names
from mleredux_techniques._kit.judging.marks import Sheet, close, listing, soft_f1
from mleredux_techniques._kit.judging.postprocessing import Known, applied
from mleredux_techniques._kit.judging.predictions import KEY
from mleredux_techniques._kit.judging.scorer import scorer
from mleredux_techniques._kit.judging.study import OnPredictions
from mleredux_techniques.calibration.document import CalibrationAnalysis, Method

Choice = tuple[Mapping[str, Method], str]
"""The calibration method of each model, and the decision rule."""

BINS = 10
FIGURES = ("accuracy", "confidence", "error")
LEAST, ERRORS = 0.02, 3.0
"""A difference counts if it exceeds both of these: an amount, and a number of standard errors."""
UNSURE = 0.15
"""Within this share of the bound, either answer is accepted."""


def truth(dataset: Dataset) -> dict[str, Any]:
    """Check that the target has classes; `reference` computes the facts from predictions.

    Raises:
        NotApplicable: The target is a number.
    """
    need_classes(dataset, "calibration")
    return {}


def describe(known: Known, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the figures of one model, with the accepted verdict and classes."""
    sure = known.predicted.max(axis=1)
    right = (known.predicted.argmax(axis=1) == known.codes).astype(float)
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    apart = np.abs(np.bincount(bins, sure - right, BINS))
    verdict, unsure = _side(sure - right)
    classes, open_ = {}, []
    for code, name in enumerate(names):
        side, either = _side(known.predicted[:, code] - (known.codes == code))
        if either:
            open_.append(name)
        elif side:
            classes[name] = "too_often" if side > 0 else "too_seldom"
    return {
        "accuracy": float(right.mean()),
        "confidence": float(sure.mean()),
        "error": float(apart.sum() / len(sure)),
        "verdict": {1: "overconfident", -1: "underconfident", 0: "calibrated"}[verdict],
        "unsure": unsure,
        "classes": classes,
        "open": open_,
    }


def _side(apart: Array) -> tuple[int, bool]:
    """Return the sign of a mean difference that counts, else 0, and whether it is too close to the bound."""
    mean, error = float(apart.mean()), float(apart.std() / np.sqrt(len(apart)))
    bound = max(LEAST, ERRORS * error)
    return int(np.sign(mean)) * (abs(mean) > bound), abs(abs(mean) - bound) <= UNSURE * bound


def mark(sheet: Sheet, document: CalibrationAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with the figures."""
    true: dict[str, dict[str, Any]] = truth["models"]
    by_name = {row.model: row for row in document.models}
    measured, exact = set(), 0
    for name, row in by_name.items():
        if name in true:
            near = [close(getattr(row, key), true[name][key], 0.02, 0.003) == 1 for key in FIGURES]
            measured |= {name} if all(near[:2]) else set()
            exact += all(near)
    figures = {name: [row[key] for key in FIGURES] for name, row in true.items()}
    known = {name: [round(value, 4) for value in values] for name, values in figures.items()}
    listed = listing(f"{name} {', '.join(f'{value:.3f}' for value in values)}" for name, values in figures.items())
    score = soft_f1(exact, len(by_name), len(true))
    sheet.mark("figures", score, len(by_name), known, listed=listed, exact=exact, all=len(true))
    unsure = {name for name, row in true.items() if row["unsure"]}
    are = {(n, row["verdict"]) for n, row in true.items() if n not in unsure and row["verdict"] != "calibrated"}
    stated = {(n, row.verdict) for n, row in by_name.items() if n not in unsure and row.verdict != "calibrated"}
    biased = {(n, c, side) for n, row in true.items() for c, side in row["classes"].items()}
    open_ = {(name, item) for name, row in true.items() for item in row["open"]}
    claims = {(name, class_name(item.name), item.side) for name, row in by_name.items() for item in row.classes}
    claims = {claim for claim in claims if claim[:2] not in open_}
    for part, pairs, right in (("verdict", stated, are), ("classes", claims, biased)):
        named = {" ".join(claim) for claim in pairs if claim[0] in measured}
        decides, false = len(unsure) < len(true), len(pairs) - len(named)
        sheet.claims(part, named, map(" ".join, right), false=false, decides=decides)


class Calibrations(OnPredictions[Choice]):
    """A method for each model, and a decision rule for their mean."""

    text = "{metric} of the mean of the calibrated predictions, on held-out training rows"

    def alike(self, instance: Instance, method: Method, decision: str = "argmax") -> Choice:
        """Return a choice with the same method for all models."""
        return dict.fromkeys(self.known(instance), method), decision

    def naive(self, instance: Instance) -> Choice:
        return self.alike(instance, "none")

    def panel(self, instance: Instance) -> Sequence[Choice]:
        return [self.alike(instance, method) for method in get_args(Method)]

    def quick(self, instance: Instance) -> Sequence[Choice]:
        return [self.alike(instance, "sigmoid"), self.alike(instance, "isotonic")]

    def strong(self, instance: Instance) -> Choice:
        return self.alike(instance, *instance.truth["strong"])

    def given(self, document: CalibrationAnalysis, instance: Instance) -> Choice:
        methods = dict(self.naive(instance)[0])
        methods |= {entry.model: entry.method for entry in document.models if entry.model in methods}
        return methods, document.decision

    def told(self, option: Choice, instance: Instance) -> str:
        methods, decision = [*option[0].values()], option[1]
        return f"{', '.join(f'{name} for {methods.count(name)} models' for name in sorted(set(methods)))}; {decision}"

    def carry(self, option: Choice, fit: list[Known], held: list[Array], instance: Instance, split: str) -> Array:
        metric, calibrated = scorer(instance.dataset, instance.base), []
        for (model, method), known, held_out in zip(option[0].items(), fit, held, strict=True):
            # all rows of a split, fitting rows first: the same for every combination
            find = partial(applied, [method], known, np.vstack([known.predicted, held_out]), metric)
            calibrated.append(remembered(instance.dataset, f"{model} by {method} {split}", find))
        ours, theirs = np.split(np.mean(calibrated, axis=0), [len(fit[0].codes)])
        if option[1] == "argmax":
            return np.asarray(theirs)
        return applied(["thresholds"], Known(ours, fit[0].codes, fit[0].frame), theirs, metric)


STUDY = Calibrations()


def reference(instance: Instance) -> dict[str, Any]:
    """Return the predictions, the figures of each model, and the strong choice: the best method, then how to decide."""
    names, (methods, decision) = class_names(instance.dataset), STUDY.best(instance, STUDY.panel(instance))
    if scorer(instance.dataset, instance.base).form == "labels":
        methods, decision = STUDY.best(instance, [(methods, "argmax"), (methods, "thresholds")])
    facts = {name: describe(known, names) for name, known in STUDY.known(instance).items()}
    held = STUDY.predictions(instance.dataset)
    return {KEY: held, "models": facts, "strong": [next(iter(methods.values())), decision]}


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    method, decision = instance.truth["strong"]
    models = []
    for name, fact in instance.truth["models"].items():
        classes = [{"name": item, "side": side} for item, side in fact["classes"].items()]
        figures = {key: fact[key] for key in (*FIGURES, "verdict")}
        models.append({"model": name, **figures, "classes": classes, "method": method})
    return {"models": models, "decision": decision}
