"""Facts of `metric`: what the competition's grader says of changed and of constant predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from mleredux.errors import MlereduxError

from mleredux_techniques._kit.judging.marks import claimed, component, facts_of, listing, same, versus
from mleredux_techniques._kit.judging.postprocessing import Known, powered, weighted
from mleredux_techniques._kit.judging.results import Facts
from mleredux_techniques._kit.judging.scorer import Scorer
from mleredux_techniques.metric.document import MetricAnalysis

CLOSE = 0.01
"""Scores are right within this share of what there is to learn: the score of the truth minus that of a constant."""
SHARE = 0.02

_ASKS = {"class columns": "probabilities", "scores": "probabilities", "labels": "labels", "numbers": "numbers"}
_SAME = 1e-6
_NONE: dict[str, Any] = {"constant_score": None, "any": True, "classes": []}


def describe(known: Known, judge: Scorer) -> dict[str, Any]:
    """Return the facts, all by the scores that the grader gives."""

    def score(told: np.ndarray[Any, Any]) -> float:
        return judge.score(known.frame, known.codes, told)

    constant = _constant(known, judge, score)
    return {
        "asks": _ASKS[judge.asked],
        "better": "higher" if judge.task.direction == "maximize" else "lower",
        "ignores": _ignored(known, judge, score),
        **constant,
        "score": score(known.told),
        "unit": judge.unit,
    }


def _ignored(known: Known, judge: Scorer, score: Callable[[np.ndarray[Any, Any]], float]) -> list[str]:
    """Return changes that leave the score of the predictions, and of worse ones, as it is."""

    def same(told: np.ndarray[Any, Any], changed: np.ndarray[Any, Any]) -> bool:
        try:
            return abs(score(changed) - score(told)) <= _SAME * judge.unit + 1e-12
        except MlereduxError:  # the metric does not accept such predictions
            return False

    rng = np.random.default_rng(0)
    mixed = known.told[rng.permutation(len(known.told))]
    level = known.told.mean() if judge.asked == "numbers" else 1 / known.told.shape[1]
    samples = [0.8 * known.told + 0.2 * level, 0.5 * known.told + 0.3 * mixed + 0.2 * level]
    spread = float(known.codes.std())
    weights = np.exp(np.linspace(0.7, -0.7, known.told.shape[1]))
    if judge.asked == "numbers":
        changes: dict[str, list[Callable[[Any], Any]]] = {
            "shift": [lambda told: told + 0.7 * spread, lambda told: told - 0.3 * spread],
            "scale": [lambda told: 1.6 * told, lambda told: 0.7 * told],
            "order_preserving": [lambda told: _ranks(told) * spread + told.min()],
        }
    else:
        changes = {
            "sharpening": [lambda told: powered(told, 2.0), lambda told: powered(told, 0.5)],
            "class_weights": [lambda told: weighted(told, weights), lambda told: weighted(told, weights[::-1])],
        }
    return [
        name
        for name, options in changes.items()
        if all(same(told, change(told)) for told in samples for change in options)
    ]


def _ranks(told: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray((np.unique(told, return_inverse=True)[1].reshape(told.shape) / len(told)) ** 2)


def _constant(known: Known, judge: Scorer, score: Callable[[np.ndarray[Any, Any]], float]) -> dict[str, Any]:
    """Return what is accepted as the best constant, and its score: None if constants have none, as no correlation."""
    rows = len(known.codes)
    sign = 1.0 if judge.task.direction == "maximize" else -1.0

    def reached(options: Iterable[Any]) -> np.ndarray[Any, Any]:
        told = np.array([sign * score(np.tile(option, (rows, 1))) for option in options])
        return np.where(np.isnan(told), -np.inf, told)

    if judge.asked == "numbers":
        middle = [known.codes.mean(), np.median(known.codes), np.expm1(np.log1p(np.maximum(known.codes, 0)).mean())]
        places = np.unique([*np.quantile(known.codes, np.linspace(0, 1, 41)), *middle])
        near = int(np.argmax(reached(places)))
        fine = np.linspace(places[max(near - 1, 0)], places[min(near + 1, len(places) - 1)], 41)
        places = np.unique([*places, *fine])
        scores = reached(places)
        right = places[scores >= scores.max() - CLOSE * judge.unit]
        told = {"constant": float(places[int(scores.argmax())]), "range": [float(right.min()), float(right.max())]}
    else:
        count = len(judge.names)
        shares = np.bincount(known.codes, minlength=count) / rows
        options = [shares, *np.eye(count)] if judge.asked == "labels" else [shares, np.full(count, 1 / count)]
        scores = reached(options)
        tied = scores >= scores.max() - _SAME * judge.unit
        labels = judge.asked == "labels"
        classes = [judge.names[code] for code in np.flatnonzero(tied[1:])] if labels else []
        told = {"constant": dict(zip(judge.names, shares.round(6).tolist(), strict=True)), "classes": classes}
        told["any"] = bool(tied.all()) and not classes
    best = float(scores.max())
    return {"any": False, **told} | ({"constant_score": sign * best} if np.isfinite(best) else _NONE)


def assess(document: MetricAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with the grader's scores."""
    best = truth["classes"] if truth.get("classes") else "any" if truth.get("any") else truth["constant"]
    claims, gains = set(document.improve) - set(truth["unsure"]), truth["improve"]
    parts = [
        same("asks", 0.05, document.asks, truth["asks"], f"The metric asks for {truth['asks']}."),
        same("better", 0.05, document.better, truth["better"], f"The {truth['better']} score is the better one."),
        claimed("ignores", 0.15, document.ignores, truth["ignores"], "The score never depends on:"),
        claimed("improve", 0.25, claims, gains, "These steps improve it:"),
    ]
    parts.append(
        component(
            "best constant",
            0.02 if truth.get("any") else 0.1,
            _credit(document, truth),
            versus(document.constant, best),
            _told(truth),
            decides=True,
        )
    )
    for name, told in (("constant_score", "The best constant"), ("score", "The given predictions")):
        if truth[name] is None:
            continue
        off = abs(getattr(document, name) - truth[name]) / truth["unit"]
        credit = 1.0 if off <= CLOSE else 0.5 if off <= 5 * CLOSE else 0.0
        shown = versus(getattr(document, name), round(truth[name], 6))
        parts.append(component(name, 0.15, credit, shown, f"{told} scored {truth[name]:.5g}."))
    return facts_of(parts)


def _told(truth: dict[str, Any]) -> str:
    constant = truth["constant"]
    if truth["constant_score"] is None:
        return "No constant has a score."
    if truth["any"]:
        return "All constants have the same score."
    if truth.get("classes"):
        return f"The best constant is one of these classes: {listing(truth['classes'])}."
    shares = listing(f"{name} {share:.3g}" for name, share in constant.items()) if isinstance(constant, dict) else ""
    return f"The best constant is {shares or f'{constant:.5g}'}."


def _credit(document: MetricAnalysis, truth: dict[str, Any]) -> float:
    given = document.constant
    if document.asks != truth["asks"]:
        return 0.0
    if truth["any"]:
        return 1.0
    if not isinstance(given, dict):
        low, high = truth["range"]
        return float(low <= given <= high)
    if truth["classes"]:
        return float(max(given, key=lambda name: given[name]) in truth["classes"])
    names = {*given, *truth["constant"]}
    return float(all(abs(given.get(name, 0.0) - truth["constant"].get(name, 0.0)) <= SHARE for name in names))
