"""Post-processing of predictions: steps that are fitted on rows with known targets and applied to other rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Frame
from mleredux_techniques._kit.judging.scorer import Scorer

Change = Callable[[Array], Array]
Step = Literal[
    "none", "temperature", "sigmoid", "isotonic", "thresholds", "labels", "clip", "mean", "median", "log_mean", "scale",
    "round",
]  # fmt: skip
OF_CLASSES = ("none", "temperature", "sigmoid", "isotonic", "thresholds", "labels", "clip")
OF_NUMBERS = ("none", "clip", "mean", "median", "log_mean", "scale", "round")
LEAST = 1e-4
CLIP = 0.02
ROWS_A_BIN, FEW_BINS, FEW_CLASSES = 40, 12, 8
_POWERS = np.geomspace(0.1, 10, 41)
_FACTORS = np.linspace(-4, 4, 17)
_RARITY = np.linspace(-1, 2, 10)


@dataclass(frozen=True)
class Known:
    """Predictions for rows with known targets.

    Attributes:
        told: Predicted probabilities of shape (rows, classes), or numbers of shape (rows, 1).
        codes: True class codes or numbers, of shape (rows,).
        frame: The rows.
    """

    told: Array
    codes: Array
    frame: Frame


def applied(steps: Sequence[Step], known: Known, told: Array, judge: Scorer, *, rough: bool = False) -> Array:
    """Apply post-processing steps, each fitted to the result of the previous ones.

    Args:
        rough: Whether to use common alternative fits: without penalty, or with a dozen bins.

    Raises:
        ValueError: A step does not apply to predictions of this kind.
    """
    possible = OF_NUMBERS if judge.asked == "numbers" else OF_CLASSES
    for step in steps:
        if step not in possible:
            raise ValueError(f"{step} does not apply to predictions of {judge.asked}")
        change = _fitted(step, known, judge, rough)
        known, told = replace(known, told=change(known.told)), change(told)
    return told


def _fitted(step: Step, known: Known, judge: Scorer, rough: bool = False) -> Change:
    if judge.asked == "numbers":
        return _of_numbers(step, known, judge, rough)
    if step == "clip":
        return lambda told: _normalised(np.maximum(told, CLIP))
    if step == "labels":
        return lambda told: np.eye(told.shape[1])[told.argmax(axis=1)]
    if step == "sigmoid":
        return _sigmoid(known, 1e3 if rough else 1.0)
    if step == "thresholds":
        return _thresholds(known, judge, rough)
    fits: dict[str, Callable[[Known, Scorer], Change]] = {"temperature": _temperature, "isotonic": _isotonic}
    return fits[step](known, judge) if step in fits else lambda told: told


def _normalised(told: Array) -> Array:
    return np.asarray(told / told.sum(axis=1, keepdims=True))


def powered(told: Array, power: float) -> Array:
    """Return probabilities raised to a power, then normalized."""
    return _normalised(np.exp(power * np.log(np.clip(told, LEAST, 1.0))))


def weighted(told: Array, weights: Array) -> Array:
    """Return probabilities multiplied by a weight per class, then normalized."""
    return _normalised(np.clip(told, LEAST, 1.0) * weights)


def _temperature(known: Known, judge: Scorer) -> Change:
    rows = np.arange(len(known.codes))
    lost = [-np.log(powered(known.told, power)[rows, known.codes]).mean() for power in _POWERS]
    best = float(_POWERS[int(np.argmin(lost))])
    return lambda told: powered(told, best)


def _sigmoid(known: Known, penalty: float = 1.0) -> Change:
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(known.codes)) < 2:
        return lambda told: told
    tool = LogisticRegression(C=penalty, max_iter=25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations suffice
        tool.fit(np.log(np.clip(known.told, LEAST, 1.0)), known.codes)

    def change(told: Array) -> Array:
        found = np.full(told.shape, LEAST)
        found[:, tool.classes_] = tool.predict_proba(np.log(np.clip(told, LEAST, 1.0)))
        return _normalised(found)

    return change


def _isotonic(known: Known, judge: Scorer) -> Change:
    from sklearn.isotonic import IsotonicRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # predictions may be uninformative
        tools = [
            IsotonicRegression(out_of_bounds="clip", increasing="auto").fit(known.told[:, code], known.codes == code)
            for code in range(known.told.shape[1])
        ]

    def change(told: Array) -> Array:
        found = [tool.predict(told[:, code]) for code, tool in enumerate(tools)]
        return _normalised(np.maximum(np.column_stack(found), LEAST))

    return change


def _thresholds(known: Known, judge: Scorer, rough: bool) -> Change:
    """Fit one factor for two classes; for several, a power of the class shares (on probabilities after `sigmoid`), then
    a factor for each of a few classes.
    """
    count = known.told.shape[1]
    first: Change = _sigmoid(known) if count > 2 and not rough else lambda told: told
    shares = np.maximum(np.bincount(known.codes, minlength=count), 1) / len(known.codes)
    options = [shares**-power for power in _RARITY] if count > 2 else [np.exp([0.0, t]) for t in _FACTORS]
    told = first(known.told)
    best = _best(options, lambda weights: weighted(told, weights), known, judge)
    for code in range(count) if 2 < count <= FEW_CLASSES else ():
        factors = [best * np.where(np.arange(count) == code, factor, 1.0) for factor in np.exp(_FACTORS[::2])]
        best = _best(factors, lambda weights: weighted(told, weights), known, judge)
    return lambda told: weighted(first(told), best)


def _best(options: Sequence[Any] | Array, change: Callable[[Any], Array], known: Known, judge: Scorer) -> Any:
    """Return the option with the best metric score; the middle one among equally good ones."""
    lost = np.round([judge.loss(known.frame, known.codes, change(option)) for option in options], 9)
    found = np.flatnonzero(lost == lost.min())
    return options[int(found[len(found) // 2])]


def _of_numbers(step: Step, known: Known, judge: Scorer, rough: bool) -> Change:
    low, high = float(known.codes.min()), float(known.codes.max())
    if step == "clip":
        return lambda told: np.clip(told, low, high)
    if step == "round":
        return np.round
    if step == "scale":
        rough = _best(np.geomspace(0.25, 4, 9), lambda one: one * known.told, known, judge)
        factor = _best(rough * np.geomspace(2**-0.5, 2**0.5, 9), lambda one: one * known.told, known, judge)
        return lambda told: factor * told
    return (lambda told: told) if step == "none" else _binned(step, known, rough)


def _binned(functional: str, known: Known, rough: bool) -> Change:
    """Return the target functional in bins of similar predictions, interpolated; with fewer bins if `rough`."""
    told = known.told[:, 0]
    order = np.argsort(told, kind="stable")
    parts = np.array_split(order, FEW_BINS if rough else int(np.clip(len(order) // ROWS_A_BIN, 1, 30)))
    find: dict[str, Callable[[Array], float]] = {
        "mean": lambda values: float(values.mean()),
        "median": lambda values: float(np.median(values)),
        "log_mean": lambda values: float(np.expm1(np.log1p(np.maximum(values, 0)).mean())),
    }
    places = np.array([told[part].mean() for part in parts])
    levels = np.array([find[functional](known.codes[part]) for part in parts])
    if rough:
        edges = (places[1:] + places[:-1]) / 2
        return lambda told: levels[np.searchsorted(edges, told[:, 0])][:, None]
    return lambda told: np.interp(told[:, 0], places, levels)[:, None]
