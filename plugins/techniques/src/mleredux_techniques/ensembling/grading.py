"""Ensembling: scores of models, copies, models whose score drops on the test set, and the value of blends there.

The strong blend is a greedy selection with replacement (R. Caruana et al., "Ensemble Selection from Libraries of
Models", 2004).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mleredux.models.formats import counted, plain

from mleredux_techniques._kit.data.association import copies
from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance, remembered
from mleredux_techniques._kit.data.splits import parts_of
from mleredux_techniques._kit.judging.marks import Sheet, listing, soft_f1
from mleredux_techniques._kit.judging.postprocessing import Known
from mleredux_techniques._kit.judging.predictions import KEY, each_model, known_of, of_test, out_of_fold, table
from mleredux_techniques._kit.judging.scorer import Scorer, scorer
from mleredux_techniques._kit.judging.study import Losses, Stage, Study
from mleredux_techniques.ensembling.document import EnsemblingAnalysis

Models = dict[str, Known]
Weights = Mapping[str, float]
ROUNDS = 12

CLOSE = 0.01
FLOOR = 0.1
"""Lower bound of a score's distance from the perfect score, as a share of the learnable range."""
SAME = 0.995
UNSURE = 0.001
LOST, ERRORS = 0.1, 4.0
"""A score is optimistic if the test score is worse by more than this share of the learnable range, and by more than
this number of standard errors."""


def losses(judge: Scorer, known: Known, blend: Array) -> Array:
    """Return the losses of predictions, one per part of the rows."""
    return np.array([judge.loss(known.frame.iloc[p], known.codes[p], blend[p]) for p in parts_of(len(known.codes))])


def describe(ours: Models, theirs: Models, judge: Scorer) -> dict[str, Any]:
    """Return the facts about the models' predictions.

    Args:
        ours: Model → predictions of training rows.
        theirs: Model → predictions of test rows.
    """
    lost, errors = dict[str, float](), dict[str, float]()
    for name, known in ours.items():
        here, there = losses(judge, known, known.predicted), losses(judge, theirs[name], theirs[name].predicted)
        lost[name] = float(there.mean() - here.mean())
        errors[name] = float(np.hypot(here.std(ddof=1) / len(here) ** 0.5, there.std(ddof=1) / len(there) ** 0.5))
    usual = max(0.0, float(np.median([*lost.values()])))  # a shifted test set costs every model something
    models: dict[str, Any] = {
        name: {
            "score": judge.score(known.frame, known.codes, known.predicted),
            "optimistic": lost[name] - usual > max(LOST * judge.unit, ERRORS * errors[name], usual),
        }
        for name, known in ours.items()
    }
    tables = (known.predicted for known in ours.values())
    matrix = np.nan_to_num(np.corrcoef([(table - table.mean(axis=0)).ravel() for table in tables]))
    same, unsure = copies(list(ours), np.atleast_2d(matrix), SAME, UNSURE)
    return {"models": models, "copies": same, "unsure": unsure, "unit": judge.unit, "perfect": judge.perfect}


def mark(sheet: Sheet, document: EnsemblingAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with the scores."""
    true: dict[str, dict[str, Any]] = truth["models"]
    entries = {entry.model: entry for entry in document.models}
    known = {name: fact["score"] for name, fact in true.items()}
    far = {n: np.clip(abs(score - truth["perfect"]) / truth["unit"], FLOOR, 1) for n, score in known.items()}
    off = {n: abs(entry.score - known[n]) / (truth["unit"] * far[n]) for n, entry in entries.items() if n in true}
    credits = {name: 1.0 if much <= CLOSE else 0.5 if much <= 5 * CLOSE else 0.0 for name, much in off.items()}
    listed = listing(f"{name} {plain(score, 4)}" for name, score in known.items())
    stated = {name: entry.score for name, entry in entries.items()}
    rounded, score = {n: round(score, 5) for n, score in known.items()}, sum(credits.values())
    sheet.mark("scores", soft_f1(score, len(entries), len(true)), stated, rounded, listed=listed)
    claimed = {name for name, entry in entries.items() if entry.optimistic}
    sure = {name for name in claimed if credits.get(name) == 1}
    sheet.claims("optimistic", sure, (n for n, entry in true.items() if entry["optimistic"]), false=len(claimed - sure))
    pairs, unsure = ({tuple(pair) for pair in truth[key]} for key in ("copies", "unsure"))
    sheet.claims("copies", {tuple(sorted(pair)) for pair in document.copies} - unsure, pairs)


class Blends(Study[Weights]):
    """Weights of models, judged on parts of the private test set."""

    text = "{metric} of the blend on parts of the private test set"
    private = True

    def naive(self, instance: Instance) -> Weights:
        return dict.fromkeys(_known(instance)[0], 1.0)

    def panel(self, instance: Instance) -> Sequence[Weights]:
        return [_greedy(instance)]

    def given(self, document: EnsemblingAnalysis, instance: Instance) -> Weights:
        known = _known(instance)[0]
        return {entry.model: entry.weight for entry in document.models if entry.model in known}

    def told(self, option: Weights, instance: Instance) -> str:
        return f"weights of {counted(sum(weight > 0 for weight in option.values()), 'model')}"

    def losses(self, instance: Instance, option: Weights, stage: Stage) -> Losses:
        if not sum(option.values()):
            raise ValueError("no known model has a weight")
        theirs = _known(instance)[1]
        values = losses(scorer(instance.dataset, instance.base), next(iter(theirs.values())), _blend(theirs, option))
        return Losses(values, 0.0, instance.dataset.sample)


STUDY = Blends()


def files(dataset: Dataset) -> dict[str, str]:
    """Return the public files."""
    held = _predictions(dataset)
    return {
        "predictions.csv": table(dataset, held[KEY]),
        "test_predictions.csv": table(dataset, held[f"test {KEY}"], test=True),
    }


def reference(instance: Instance) -> dict[str, Any]:
    """Return the predictions, the facts, and the weights of the strong choice."""
    return {**_predictions(instance.dataset), **_facts(instance), "strong": _greedy(instance)}


def _predictions(dataset: Dataset) -> dict[str, Any]:
    test = remembered(dataset, f"test {KEY}", lambda: of_test(dataset))
    return {KEY: each_model(out_of_fold(dataset), dataset), f"test {KEY}": each_model(test, dataset)}


def _known(instance: Instance) -> tuple[Models, Models]:
    """Return the predictions for training and for test rows, by model."""

    def find() -> tuple[Models, Models]:
        held = instance.truth if KEY in instance.truth else _predictions(instance.dataset)
        at, names = Instance(instance.dataset, held, instance.base), held[KEY]["values"]
        ours, theirs = ({name: known_of(at, name, test=test) for name in names} for test in (False, True))
        return ours, theirs

    return remembered(instance.dataset, "known by ensembling", find)


def _facts(instance: Instance) -> dict[str, Any]:
    metric = scorer(instance.dataset, instance.base)
    return remembered(instance.dataset, "ensembling", lambda: describe(*_known(instance), metric))


def _blend(models: Models, weights: Weights) -> Array:
    return np.asarray(sum(weight * models[name].predicted for name, weight in weights.items()) / sum(weights.values()))


def _greedy(instance: Instance) -> dict[str, float]:
    """Return the number of times that greedy selection adds each model, while this improves the training score."""
    (models, _theirs), metric = _known(instance), scorer(instance.dataset, instance.base)
    usable = [name for name, entry in _facts(instance)["models"].items() if not entry["optimistic"]] or list(models)
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


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    truth, weights = instance.truth, instance.truth["strong"]
    total = sum(weights.values())
    models = [
        {"model": name, **fact, "weight": weights.get(name, 0.0) / total} for name, fact in truth["models"].items()
    ]
    return {"models": models, "copies": truth["copies"]}
