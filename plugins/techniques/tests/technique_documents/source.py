"""An agent that has read the source code: it counts right, and judges and advises as the planting code lets it expect.

It does not measure what a judgement is about. What it gets shows how much the defaults of planted instances give away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Answer = dict[str, Any]


def source(technique: str, best: Answer, truth: Answer, question: Answer) -> Answer:
    """The document: public figures of the perfect one, with what planting makes most probable.

    Args:
        truth: Of the task, of which only figures of the training rows are used.
        question: The task's `question.json`.
    """
    made = {**best, **_ANSWERS[technique](best, question)}
    if technique == "shift":  # as in the training rows
        made["target"] = truth["train"].get("", truth["train"])
    return made


def _eda(best: Answer, question: Answer) -> Answer:
    """Nothing but types is known: amounts are texts; any text has a relation, for all planted ones do."""
    columns = []
    for one in best["columns"]:
        amount = one["type"] == "number_as_text"
        columns.append(
            {key: one[key] for key in ("column", "type", "distinct")}
            | {"relation": "values" if amount else "monotone", "drift": 0.3 if one["type"] == "number" else None}
            | {"actions": ["to_number"] if amount else []}
        )
    return {"columns": columns}


def _features(best: Answer, question: Answer) -> Answer:
    """Most planted features tell nothing, and these have small strengths; targets have long tails."""
    features = []
    for one in best["features"]:
        tells = one["strength"] > 0.1
        features.append({**one, "tells": "alone" if tells else "nothing", "keep": tells})
    return {"features": features, "pairs": [], "transform": "none" if best["skewness"] is None else "log1p"}


def _shift(best: Answer, question: Answer) -> Answer:
    """Of five features that drift far, three are broken; one is a time, after whose middle relations change."""
    far = [one["column"] for one in best["features"] if 0.5 < one["distance"] < 0.999]
    times = [one["column"] for one in best["features"] if one["distance"] >= 0.999][:1]
    features = [{**one, "broken": one["column"] in far} for one in best["features"]]
    advice = {"drop": far, "weights": "none", "recent": 0.5 if times else 1.0}
    return {"features": features, "changes": next(iter(times), None), **advice}


def _metric(best: Answer, question: Answer) -> Answer:
    """Predictions are too sure and weighted by class, or off by a factor of a target with a long tail."""
    if best["asks"] == "numbers":
        return {"improve": ["mean", "median", "scale"], "steps": ["mean"]}
    return {"improve": ["temperature", "sigmoid", "isotonic"], "steps": ["sigmoid"]}


def _calibration(best: Answer, question: Answer) -> Answer:
    """A model that is much too sure, one too sure, one not sure enough, and one weighted by class."""
    told = [
        {**one, "verdict": "overconfident" if one["confidence"] > one["accuracy"] else "underconfident", "classes": []}
        for one in best["models"]
    ]
    return {"models": [{**one, "method": "sigmoid"} for one in told], "decision": "argmax"}


def _ensembling(best: Answer, question: Answer) -> Answer:
    """The best scores are of models that were fitted, the worst of two that know little."""
    order = sorted(best["models"], key=lambda one: one["score"], reverse=question["direction"] == "maximize")
    names = [one["model"] for one in order]
    kept = {*names[1:-2]}
    models = [
        {**one, "optimistic": one["model"] == names[0], "weight": float(one["model"] in kept)} for one in best["models"]
    ]
    return {"models": models}


_ANSWERS: dict[str, Callable[[Answer, Answer], Answer]] = {
    "eda": _eda,
    "features": _features,
    "shift": _shift,
    "metric": _metric,
    "calibration": _calibration,
    "ensembling": _ensembling,
}
TECHNIQUES = tuple(_ANSWERS)
