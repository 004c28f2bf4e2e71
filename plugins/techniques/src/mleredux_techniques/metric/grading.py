"""Metric: the competition's scores of changed and of constant predictions, and the value of post-processing.

Steps are fitted and scored on different rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from mleredux.errors import MlereduxError, NotApplicable
from mleredux.models.formats import plain

from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance
from mleredux_techniques._kit.judging.comparison import difference
from mleredux_techniques._kit.judging.marks import Sheet, listing
from mleredux_techniques._kit.judging.postprocessing import Known, Step, applied, powered, weighted
from mleredux_techniques._kit.judging.predictions import KEY, OVERLAP, distorted, listed, losses, out_of_fold
from mleredux_techniques._kit.judging.scorer import Scorer, scorer
from mleredux_techniques._kit.judging.study import OnPredictions
from mleredux_techniques.metric.document import MetricAnalysis

Steps = Sequence[Step]
MODEL = "model"
NAIVE: Steps = ("none",)
CLASSES: tuple[Steps, ...] = (
    NAIVE, ("temperature",), ("sigmoid",), ("isotonic",), ("thresholds",), ("isotonic", "thresholds")
)  # fmt: skip
NUMBERS: tuple[Steps, ...] = (
    NAIVE, ("round",), ("scale",), ("mean",), ("median",), ("log_mean",), ("median", "round")
)  # fmt: skip
CHANCE, SURE = 1.0, 3.0
"""Numbers of standard errors by which a step surely, or possibly, improves the score."""

CLOSE = 0.01
"""Tolerance of scores, as a share of the learnable range: the score of the truth minus that of a constant."""
SHARE = 0.02

_ASKS = {"class columns": "probabilities", "scores": "probabilities", "labels": "labels", "numbers": "numbers"}
_SAME = 1e-6
_NONE: dict[str, Any] = {"constant_score": None, "any": True, "classes": []}


def describe(known: Known, judge: Scorer) -> dict[str, Any]:
    """Return the facts, all derived from scores by the grader."""

    def score(predictions: Array) -> float:
        return judge.score(known.frame, known.codes, predictions)

    return {
        "asks": _ASKS[judge.form],
        "better": "higher" if judge.task.direction == "maximize" else "lower",
        "ignores": _ignored(known, judge, score),
        **_constant(known, judge, score),
        "score": score(known.predicted),
        "unit": judge.unit,
    }


def _ignored(known: Known, judge: Scorer, score: Callable[[Array], float]) -> list[str]:
    """Return changes that leave the score of the predictions, and of worse ones, unchanged."""

    def same(before: Array, changed: Array) -> bool:
        try:
            return abs(score(changed) - score(before)) <= _SAME * judge.unit + 1e-12
        except MlereduxError:  # the metric does not accept such predictions
            return False

    rng = np.random.default_rng(0)
    mixed = known.predicted[rng.permutation(len(known.predicted))]
    level = known.predicted.mean() if judge.form == "numbers" else 1 / known.predicted.shape[1]
    samples = [0.8 * known.predicted + 0.2 * level, 0.5 * known.predicted + 0.3 * mixed + 0.2 * level]
    spread = float(known.codes.std())
    weights = np.exp(np.linspace(0.7, -0.7, known.predicted.shape[1]))
    if judge.form == "numbers":
        changes: dict[str, list[Callable[[Any], Any]]] = {
            "shift": [lambda p: p + 0.7 * spread, lambda p: p - 0.3 * spread],
            "scale": [lambda p: 1.6 * p, lambda p: 0.7 * p],
            "order_preserving": [lambda p: _ranks(p) * spread + p.min()],
        }
    else:
        changes = {
            "sharpening": [lambda p: powered(p, 2.0), lambda p: powered(p, 0.5)],
            "class_weights": [lambda p: weighted(p, weights), lambda p: weighted(p, weights[::-1])],
        }
    return [name for name, options in changes.items() if all(same(p, change(p)) for p in samples for change in options)]


def _ranks(values: Array) -> Array:
    return np.asarray((np.unique(values, return_inverse=True)[1].reshape(values.shape) / len(values)) ** 2)


def _constant(known: Known, judge: Scorer, score: Callable[[Array], float]) -> dict[str, Any]:
    """Return the accepted best constants and their score; None if constants have no score, as for correlations."""
    rows = len(known.codes)
    sign = 1.0 if judge.task.direction == "maximize" else -1.0

    def reached(options: Iterable[Any]) -> Array:
        scores = np.array([sign * score(np.tile(option, (rows, 1))) for option in options])
        return np.where(np.isnan(scores), -np.inf, scores)

    if judge.form == "numbers":
        middle = [known.codes.mean(), np.median(known.codes), np.expm1(np.log1p(np.maximum(known.codes, 0)).mean())]
        places = np.unique([*np.quantile(known.codes, np.linspace(0, 1, 41)), *middle])
        near = int(np.argmax(reached(places)))
        fine = np.linspace(places[max(near - 1, 0)], places[min(near + 1, len(places) - 1)], 41)
        places = np.unique([*places, *fine])
        scores = reached(places)
        right = places[scores >= scores.max() - CLOSE * judge.unit]
        best_of = {"constant": float(places[int(scores.argmax())]), "range": [float(right.min()), float(right.max())]}
    else:
        count = len(judge.names)
        shares = np.bincount(known.codes, minlength=count) / rows
        options = [shares, *np.eye(count)] if judge.form == "labels" else [shares, np.full(count, 1 / count)]
        scores = reached(options)
        tied = scores >= scores.max() - _SAME * judge.unit
        labels = judge.form == "labels"
        classes = [judge.names[code] for code in np.flatnonzero(tied[1:])] if labels else []
        best_of = {"constant": dict(zip(judge.names, shares.round(6).tolist(), strict=True)), "classes": classes}
        best_of["any"] = bool(tied.all()) and not classes
    best = float(scores.max())
    return {"any": False, **best_of} | ({"constant_score": sign * best} if np.isfinite(best) else _NONE)


def mark(sheet: Sheet, document: MetricAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with the grader's scores."""
    sheet.same("asks", document.asks, truth["asks"])
    sheet.same("better", document.better, truth["better"])
    sheet.claims("ignores", document.ignores, truth["ignores"])
    sheet.claims("improve", set(document.improve) - set(truth["unsure"]), truth["improve"])
    best = truth["classes"] if truth.get("classes") else "any" if truth.get("any") else truth["constant"]
    weight = 0.02 if truth.get("any") else 0.1
    sheet.mark("best constant", _credit(document, truth), document.constant, best, text=_line(truth), weight=weight)
    for name in ("constant_score", "score"):
        if truth[name] is not None:
            off = abs(getattr(document, name) - truth[name]) / truth["unit"]
            credit = 1.0 if off <= CLOSE else 0.5 if off <= 5 * CLOSE else 0.0
            sheet.mark(name, credit, getattr(document, name), round(truth[name], 6), reached=truth[name])


def _line(truth: dict[str, Any]) -> str:
    constant = truth["constant"]
    if truth["constant_score"] is None:
        return "No constant has a score."
    if truth["any"]:
        return "All constants have the same score."
    if truth.get("classes"):
        return f"The best constant is one of these classes: {listing(truth['classes'])}."
    shares = (
        listing(f"{name} {plain(share, 3)}" for name, share in constant.items()) if isinstance(constant, dict) else ""
    )
    return f"The best constant is {shares or f'{plain(constant, 5)}'}."


def _credit(document: MetricAnalysis, truth: dict[str, Any]) -> float:
    answer = document.constant
    if document.asks != truth["asks"]:
        return 0.0
    if truth["any"]:
        return 1.0
    if not isinstance(answer, dict):
        low, high = truth["range"]
        return float(low <= answer <= high)
    if truth["classes"]:
        return float(max(answer, key=lambda name: answer[name]) in truth["classes"])
    names = {*answer, *truth["constant"]}
    return float(all(abs(answer.get(name, 0.0) - truth["constant"].get(name, 0.0)) <= SHARE for name in names))


class PostProcessing(OnPredictions[Steps]):
    """Sequences of post-processing steps."""

    text = "{metric} of the given predictions after these steps, on held-out training rows"

    def predictions(self, dataset: Dataset) -> dict[str, Any]:
        """Return the predictions of the public file: the reference models' mean, distorted if planted."""
        held_out = out_of_fold(dataset)
        mean = np.mean(list(held_out["values"].values()), axis=0)
        return listed(held_out["rows"], {MODEL: distorted(mean, dataset.planted.get(KEY, {}), held_out["truth"])})

    def naive(self, instance: Instance) -> Steps:
        return NAIVE

    def panel(self, instance: Instance) -> Sequence[Steps]:
        return NUMBERS if scorer(instance.dataset, instance.base).form == "numbers" else CLASSES

    def quick(self, instance: Instance) -> Sequence[Steps]:
        return NUMBERS[1:-1] if self.panel(instance) is NUMBERS else CLASSES[2:4]

    def strong(self, instance: Instance) -> Steps:
        return tuple(instance.truth["strong"])

    def given(self, document: MetricAnalysis, instance: Instance) -> Steps:
        return tuple(document.steps)

    def told(self, option: Steps, instance: Instance) -> str:
        return ", ".join(option)

    def carry(self, option: Steps, fit: list[Known], held: list[Array], instance: Instance, split: str) -> Array:
        return applied(option, fit[0], held[0], scorer(instance.dataset, instance.base))

    def roughly(self, instance: Instance, steps: Steps) -> Array:
        """Return the losses on other splits, with commonly used fits of the steps."""
        metric = scorer(instance.dataset, instance.base)

        def carry(fit: list[Known], held: list[Array], split: str) -> Array:
            return applied(steps, fit[0], held[0], metric, rough=True)

        return losses(metric, [self.known(instance)[MODEL]], carry, seed=8, repeats=1)


STUDY = PostProcessing()


def reference(instance: Instance) -> dict[str, Any]:
    """Return the predictions, the facts, and the best of several sequences of steps.

    Raises:
        NotApplicable: The metric can't be computed for predictions of individual rows.
    """
    metric = scorer(instance.dataset, instance.base)
    if metric.substitute:
        raise NotApplicable(
            f"metric does not apply to {instance.base.id}: its metric {instance.base.metric.id} can't be computed for "
            "individual rows of its training table."
        )
    panel = STUDY.panel(instance)
    losses_of = {
        steps[0]: (STUDY.losses(instance, steps, "chosen").values, STUDY.roughly(instance, steps))
        for steps in panel
        if len(steps) == 1
    }
    gains = {
        name: [difference(naive, after, OVERLAP).ratio for naive, after in zip(losses_of["none"], both, strict=True)]
        for name, both in losses_of.items()
    }
    return {
        KEY: STUDY.predictions(instance.dataset),
        **describe(STUDY.known(instance)[MODEL], metric),
        "strong": list(STUDY.best(instance, panel)),
        "improve": sorted(name for name, gain in gains.items() if min(gain) > SURE),
        "unsure": sorted(name for name, gain in gains.items() if min(gain) <= SURE and max(gain) >= CHANCE),
    }


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    truth = instance.truth
    constant = {truth["classes"][0]: 1.0} if truth.get("classes") else truth["constant"]
    keys = ("asks", "better", "ignores", "constant_score", "score", "improve")
    return {**{name: truth[name] for name in keys}, "constant": constant, "steps": truth["strong"]}
