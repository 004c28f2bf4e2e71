"""Sheets about given predictions: each figure is computed from predictions.csv as the description defines it.

The judgements are by the same rule on all tables: a step improves if its gain over five folds exceeds three standard
errors, corrected for the rows that folds share (Nadeau and Bengio 2003).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize
from sklearn import metrics
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

from natural.data import Data, plain

Array = np.ndarray[Any, Any]
Document = dict[str, Any]
LABELS = {
    "accuracy": metrics.accuracy_score,
    "balanced-accuracy": lambda true, told: float(
        np.mean([(told[true == value] == value).mean() for value in set(true)])
    ),
    "f1": lambda true, told: metrics.f1_score(true, told, average="macro"),
}
NUMBERS = {
    "rmse": metrics.root_mean_squared_error,
    "mae": metrics.mean_absolute_error,
    "rmsle": lambda true, told: metrics.root_mean_squared_log_error(true, np.maximum(told, 0)),
}


class Scored:
    """Predictions of one model (or several) and their score by the competition's metric."""

    def __init__(self, data: Data) -> None:
        rows = data.predictions
        self.metric, self.minimize = data.metric, data.minimize
        self.regression = data.regression
        names = [name for name in rows.columns if name not in data.question["ids"] and name != "target"]
        self.classes = sorted({plain(value) for value in data.y.unique()})
        self.true = rows["target"].to_numpy() if self.regression else rows["target"].map(plain).to_numpy()
        models = list(dict.fromkeys(name if self.regression else name.split(" ", 1)[0] for name in names))
        self.models: dict[str, Array] = {
            model: rows[model].to_numpy(float)
            if self.regression
            else np.stack([rows[f"{model} {value}"].to_numpy(float) for value in self.classes], axis=1)
            for model in models
        }

    def score(self, told: Array, rows: Any = slice(None)) -> float:
        """The metric's score of numbers, or of probabilities of the classes."""
        true = self.true[rows]
        if self.regression:
            return float(NUMBERS[self.metric](true.astype(float), told))
        if self.metric == "roc-auc":
            return float(metrics.roc_auc_score(true == self.classes[1], told[:, 1]))
        if self.metric == "log-loss":
            return float(metrics.log_loss(true, told / told.sum(1, keepdims=True), labels=self.classes))
        return float(LABELS[self.metric](true, np.array(self.classes)[told.argmax(1)]))

    def gain(self, after: float, before: float) -> float:
        return before - after if self.minimize else after - before

    def constant(self) -> tuple[Any, float]:
        """The best constant prediction and its score."""
        if self.regression:
            true = self.true.astype(float)
            value = {"mae": np.median(true), "rmse": true.mean(), "rmsle": np.expm1(np.log1p(true).mean())}[self.metric]
            return float(value), self.score(np.full(len(true), value))
        shares = np.array([(self.true == value).mean() for value in self.classes])
        if self.metric in LABELS:
            best = max(
                range(len(shares)),
                key=lambda place: self.score(np.tile(np.eye(len(shares))[place], (len(self.true), 1))),
            )
            shares = np.eye(len(shares))[best]
        return dict(zip(self.classes, map(float, shares), strict=True)), self.score(
            np.tile(shares, (len(self.true), 1))
        )

    def folds(self) -> list[tuple[Array, Array]]:
        if self.regression:
            return list(KFold(5, shuffle=True, random_state=0).split(self.true))
        if min(np.unique(self.true, return_counts=True)[1]) < 5:
            return list(KFold(5, shuffle=True, random_state=0).split(self.true))
        return list(StratifiedKFold(5, shuffle=True, random_state=0).split(self.true, self.true))

    def effect(self, step: str, told: Array) -> tuple[float, float]:
        """The mean gain of a step on other rows, and its standard error."""
        gains = []
        for train, test in self.folds():
            fitted = STEPS[step](self, told[train], train)
            gains.append(self.gain(self.score(fitted(told[test]), test), self.score(told[test], test)))
        error = float(np.std(gains, ddof=1)) * np.sqrt(1 / 5 + 1 / 4)
        return float(np.mean(gains)), max(error, 1e-12)


def normalized(told: Array) -> Array:
    return told / told.sum(1, keepdims=True)


def clipped(told: Array) -> Array:
    return normalized(np.clip(told, 1e-6, 1))


def temperature(scored: Scored, told: Array, rows: Array) -> Callable[[Array], Array]:
    """One power for all probabilities, by log loss."""
    place = np.array([scored.classes.index(value) for value in scored.true[rows]])

    def loss(power: float) -> float:
        return float(-np.log(normalized(clipped(told) ** np.exp(power))[np.arange(len(place)), place]).mean())

    power = np.exp(optimize.minimize_scalar(loss, bounds=(-3, 3), method="bounded").x)
    return lambda told: normalized(clipped(told) ** power)


def sigmoid(scored: Scored, told: Array, rows: Array) -> Callable[[Array], Array]:
    """A logistic regression on the logarithms."""
    model = LogisticRegression(C=1e3, max_iter=1000).fit(np.log(clipped(told)), scored.true[rows])
    places = [scored.classes.index(value) for value in model.classes_]

    def calibrated(told: Array) -> Array:
        filled = np.full(told.shape, 1e-9)  # a class that these rows lack
        filled[:, places] = model.predict_proba(np.log(clipped(told)))
        return filled

    return calibrated


def isotonic(scored: Scored, told: Array, rows: Array) -> Callable[[Array], Array]:
    """A monotone regression of each class."""
    models = [
        IsotonicRegression(out_of_bounds="clip").fit(told[:, place], scored.true[rows] == value)
        for place, value in enumerate(scored.classes)
    ]
    return lambda told: normalized(np.stack([m.predict(told[:, k]) for k, m in enumerate(models)], axis=1) + 1e-6)


def thresholds(scored: Scored, told: Array, rows: Array) -> Callable[[Array], Array]:
    """A factor per class, by the metric."""
    factors = np.ones(told.shape[1])
    for _round in range(2):
        for place in range(len(factors)):
            tries = []
            for factor in np.exp(np.linspace(-2.5, 2.5, 41)):
                tried = factors.copy()
                tried[place] = factor
                tries.append(
                    (scored.gain(scored.score(normalized(told * tried), rows), 0), -abs(np.log(factor)), factor)
                )
            factors[place] = max(tries)[2]
    return lambda told: normalized(told * factors)


def by_range(center: Callable[[Array], float]) -> Any:
    """The center of the targets of rows with similar predictions."""

    def step(scored: Scored, told: Array, rows: Array) -> Callable[[Array], Array]:
        true = scored.true[rows].astype(float)
        edges = np.unique(np.quantile(told, np.linspace(0, 1, 13)[1:-1]))
        cells = np.digitize(told, edges)
        values = np.array(
            [center(true[cells == cell]) if (cells == cell).any() else center(true) for cell in range(len(edges) + 1)]
        )
        return lambda told: values[np.digitize(told, edges)]

    return step


def scale(scored: Scored, told: Array, rows: Array) -> Callable[[Array], Array]:
    """A factor, by the metric."""
    factor = max(np.linspace(0.5, 2, 151), key=lambda factor: scored.gain(scored.score(told * factor, rows), 0))
    return lambda told: told * factor


STEPS: dict[str, Any] = {
    "temperature": temperature,
    "sigmoid": sigmoid,
    "isotonic": isotonic,
    "thresholds": thresholds,
    "mean": by_range(np.mean),
    "median": by_range(np.median),
    "log_mean": by_range(lambda true: float(np.expm1(np.log1p(true).mean()))),
    "scale": scale,
    "round": lambda scored, told, rows: np.round,
}


def metric(data: Data, _claim: Any) -> Document:
    """The sheet of `metric`."""
    scored = Scored(data)
    told = next(iter(scored.models.values()))
    value, constant_score = scored.constant()
    steps = list(STEPS)[4:] if scored.regression else list(STEPS)[:4]
    effects = {step: scored.effect(step, told) for step in steps}
    improve = [step for step, (gain, error) in effects.items() if gain > 3 * error]
    best = max(effects, key=lambda step: effects[step][0])
    labels = data.metric in LABELS
    ignores = {"roc-auc": ["sharpening", "class_weights"]}.get(data.metric, ["sharpening"] if labels else [])
    return {
        "asks": "numbers" if scored.regression else "labels" if labels else "probabilities",
        "better": "lower" if data.minimize else "higher",
        "ignores": ignores,
        "constant": value,
        "constant_score": constant_score,
        "score": scored.score(told),
        "improve": improve,
        "steps": [best] if improve else ["none"],
    }


def metric_wrong(data: Data, sheet: Document) -> dict[str, Document]:
    """Five wrong documents."""
    steps = list(STEPS)[4:] if data.regression else list(STEPS)[:4]
    others = ["shift", "scale", "order_preserving"] if data.regression else ["class_weights"]
    turned = [step for step in steps if step not in sheet["improve"]]
    first = sorted(sheet["constant"]) if isinstance(sheet["constant"], dict) else []
    other = {"probabilities": "labels", "labels": "probabilities", "numbers": "numbers"}[sheet["asks"]]
    off: Any = {name: float(name == first[0]) for name in first} if first else sheet["constant"] * 3 + 1
    return {
        "blind": sheet
        | {"constant": off, "constant_score": 0.0, "score": 0.0, "ignores": [], "improve": [], "steps": ["none"]},
        "naive": sheet | {"improve": [], "steps": ["none"]},
        "absurd": sheet
        | {
            "asks": other,
            "better": "higher" if data.minimize else "lower",
            "ignores": others,
            "constant": off,
            "constant_score": -sheet["constant_score"],
            "improve": turned,
            "steps": turned[:1],
        },
        "everything": sheet
        | {
            "ignores": ["shift", "scale", "order_preserving"] if data.regression else ["sharpening", "class_weights"],
            "improve": steps,
            "steps": steps[:3],
        },
        "opposite": sheet
        | {
            "ignores": others,
            "improve": turned,
            "steps": turned[:3],
            "score": sheet["constant_score"],
            "constant_score": sheet["score"],
        },
    }


def calibration(data: Data, _claim: Any) -> Document:
    """The sheet of `calibration`."""
    scored = Scored(data)
    rows = []
    for model, told in scored.models.items():
        size = len(told)
        sure, hit = told.max(1), np.array(scored.classes)[told.argmax(1)] == scored.true
        cells = np.minimum((sure * 10).astype(int), 9)
        error = sum(
            abs(sure[cells == cell].mean() - hit[cells == cell].mean()) * (cells == cell).mean()
            for cell in np.unique(cells)
        )
        gap, bound = (sure - hit).mean(), max(0.02, 3 * float((sure - hit).std(ddof=1)) / np.sqrt(size))
        classes = []
        for place, value in enumerate(scored.classes):
            differences = told[:, place] - (scored.true == value)
            if abs(differences.mean()) > max(0.02, 3 * differences.std(ddof=1) / np.sqrt(size)):
                classes.append({"name": value, "side": "too_often" if differences.mean() > 0 else "too_seldom"})
        rows.append(
            {
                "model": model,
                "accuracy": float(hit.mean()),
                "confidence": float(sure.mean()),
                "error": float(error),
                "verdict": "overconfident" if gap > bound else "underconfident" if gap < -bound else "calibrated",
                "classes": classes,
                "method": "temperature" if abs(gap) > bound else "none",
            }
        )
    acts = scored.metric in ("balanced-accuracy", "f1")
    return {"models": rows, "decision": "thresholds" if acts else "argmax"}


def calibration_wrong(data: Data, sheet: Document) -> dict[str, Document]:
    """Five wrong documents."""
    first = sorted({plain(value) for value in data.y.unique()})[0]
    decision = {"argmax": "thresholds", "thresholds": "argmax"}[sheet["decision"]]

    def each(**changes: Any) -> list[Document]:
        return [row | changes for row in sheet["models"]]

    def sure(row: Document, by: float) -> Document:
        """The row with a confidence that is off by so much, and the verdict that follows."""
        accuracy = min(row["accuracy"], 1 - by) if by > 0 else max(row["accuracy"], -by)
        verdict = "overconfident" if by > 0 else "underconfident"
        told = {"accuracy": accuracy, "confidence": accuracy + by, "error": abs(by)}
        return row | told | {"verdict": verdict, "method": "isotonic"}

    classes = [{"name": plain(value), "side": "too_often"} for value in sorted(data.y.unique())]
    turned = [
        sure(row, -0.3 if row["verdict"] == "overconfident" else 0.3)
        | {"classes": [] if row["classes"] else classes[:1]}
        for row in sheet["models"]
    ]
    return {
        "blind": sheet
        | {
            "models": each(
                accuracy=0.8, confidence=0.9, error=0.1, verdict="overconfident", classes=[], method="temperature"
            )
        },
        "naive": sheet
        | {
            "models": [
                row | {"confidence": row["accuracy"], "verdict": "calibrated", "classes": [], "method": "none"}
                for row in sheet["models"]
            ],
            "decision": "argmax",
        },
        "absurd": {
            "models": [
                sure(row, -0.4) | {"classes": [{"name": first, "side": "too_seldom"}]} for row in sheet["models"]
            ],
            "decision": decision,
        },
        "everything": sheet | {"models": [sure(row, 0.2) | {"classes": classes} for row in sheet["models"]]},
        "opposite": {"models": turned, "decision": decision},
    }


def ensembling(data: Data, _claim: Any) -> Document:
    """The sheet of `ensembling`: nothing natural is too good; a blend by greedy selection (Caruana et al. 2004)."""
    scored = Scored(data)
    scores = {model: scored.score(told) for model, told in scored.models.items()}
    picked = dict.fromkeys(scored.models, 0)
    total, best = 0.0 * next(iter(scored.models.values())), -np.inf
    for count in range(1, 30):
        tries = {m: scored.gain(scored.score((total + told) / count), 0) for m, told in scored.models.items()}
        model = max(tries, key=tries.__getitem__)
        if tries[model] <= best:
            break
        total, best, picked[model] = total + scored.models[model], tries[model], picked[model] + 1
    flat = pd.DataFrame({model: told.ravel() for model, told in scored.models.items()}).corr()
    return {
        "models": [
            {
                "model": model,
                "score": scores[model],
                "optimistic": False,
                "weight": picked[model] / sum(picked.values()),
            }
            for model in scored.models
        ],
        "copies": [[a, b] for a, b in combinations(scored.models, 2) if flat.loc[a, b] > 0.995],
    }


def ensembling_wrong(data: Data, sheet: Document) -> dict[str, Document]:
    """Five wrong documents."""
    rows, names = sheet["models"], [row["model"] for row in sheet["models"]]
    order = sorted(rows, key=lambda row: row["score"] if data.minimize else -row["score"])
    worst, best = order[-1]["model"], order[0]["model"]
    equal = [row | {"weight": 1 / len(rows)} for row in rows]
    every = [list(pair) for pair in combinations(names, 2)]
    return {
        "blind": {"models": [row | {"score": 0.5} for row in equal], "copies": []},
        "naive": sheet | {"models": equal},
        "absurd": {
            "models": [
                row | {"optimistic": True, "score": -row["score"] - 1, "weight": float(row["model"] == worst)}
                for row in rows
            ],
            "copies": every,
        },
        "everything": {"models": [row | {"optimistic": True} for row in equal], "copies": every},
        "opposite": {
            "models": [
                row | {"optimistic": row["model"] == best, "weight": float(row["model"] == worst)} for row in rows
            ],
            "copies": [pair for pair in every if pair not in sheet["copies"]][:1],
        },
    }
