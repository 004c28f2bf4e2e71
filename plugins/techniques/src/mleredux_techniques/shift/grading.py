"""Shift: distances between the tables, changes shown by the test labels, and the value of advice on drift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from mleredux.models.formats import plain

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Array, Dataset, Frame, Instance, refusal, remembered
from mleredux_techniques._kit.data.skill import Judge
from mleredux_techniques._kit.data.splits import Pool, group_codes
from mleredux_techniques._kit.data.structure import in_time, moments
from mleredux_techniques._kit.data.views import in_bins, of_values
from mleredux_techniques._kit.judging.comparison import difference
from mleredux_techniques._kit.judging.marks import Sheet, close
from mleredux_techniques._kit.judging.plans import across, by_part, of_best, predicted, rows_of
from mleredux_techniques._kit.judging.reference import predict
from mleredux_techniques._kit.judging.study import Losses, Stage, Study
from mleredux_techniques._kit.vocabulary.encoders import DropFeature
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing, Rows, matrices
from mleredux_techniques.shift.document import ShiftAnalysis

ROWS, PARTS = 2_400, 20
DRIFTS, RECENT, BINS = 0.1, (0.5, 0.25), 16
"""Features with a larger distance count as drifting; recent rows are one of these shares of all, unless planted."""
TELLING, DOUBT, LOST = 0.1, 2.0, 4.0
"""Minimum skill in training of a predictive feature; numbers of standard errors above which its loss on the test set is
possible, and certain."""
HARM, CHANCE, CHANGE = 3.0, 1.5, 4.0
"""Gains of leaving out a surely, or possibly, broken feature, and of recent rows, in standard errors."""
RATIO = 10.0
_DROP = Preprocessing(encoding=DropFeature(name="drop"))
KEY = "shift"
"""The key of the planted facts."""
MOST_VALUES = 50
ERRORS, LEAST, TOLERATED = 4.0, 0.05, 0.03
"""A target counts as moved beyond this number of standard errors, and beyond this share (or number of standard
deviations).
"""


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return distances, and the target in both tables; `reference` finds harmful changes with models.

    Raises:
        NotApplicable: There are no features.
    """
    if not dataset.features:
        raise refusal(dataset, "shift", "its tables have no features in common")
    by_name = {name: distance(dataset, name) for name in dataset.features}
    spread = float(dataset.train[dataset.target].std()) or 1.0 if dataset.problem == "regression" else 1.0
    (ours, error), (theirs, other) = (_target(dataset, frame) for frame in (dataset.train, dataset.test))
    moves = {name: abs(theirs[name] - ours[name]) / spread for name in ours}
    sure = [moves[name] > max(LEAST, ERRORS * np.hypot(error[name], other[name]) / spread) for name in ours]
    return {
        "distances": {name: value for name, value in by_name.items() if value is not None},
        "target": theirs,
        "train": ours,
        "spread": spread,
        "move": max(moves.values()),
        "moved": any(sure),
    }


def distance(dataset: Dataset, name: str) -> float | None:
    """Return the distance of a feature between training and test; None for texts with many values."""
    from scipy.stats import ks_2samp

    ours, theirs = dataset.train[name], dataset.test[name]
    if dataset.kinds[name] == "number":
        known = ours.dropna(), theirs.dropna()
        return float(ks_2samp(*known).statistic) if all(map(len, known)) else 0.0
    if ours.nunique() > MOST_VALUES:
        return None
    shares = [part.fillna("").astype(str).value_counts(normalize=True) for part in (ours, theirs)]
    return min(float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2), 1.0)


def _target(dataset: Dataset, frame: Frame) -> tuple[dict[str, float], dict[str, float]]:
    """Return the share of each class (or the mean of a numeric target), with standard errors over groups of rows."""
    values, groups = frame[dataset.target].to_numpy(), group_codes(dataset, frame)
    columns = {"": values} if dataset.problem == "regression" else {name: values == name for name in dataset.classes}
    means = {name: float(column.mean()) for name, column in columns.items()}
    sums = {name: np.bincount(groups, column - means[name]) for name, column in columns.items()}
    return means, {name: float(np.sqrt((part**2).sum()) / len(values)) for name, part in sums.items()}


def mark(sheet: Sheet, document: ShiftAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with both tables."""
    true = truth["distances"]
    stated = {item.column: item for item in document.features}
    right = {name for name in {*stated} & {*true} if close(stated[name].distance, true[name], 0.02, 0.01) == 1}
    sheet.measured("distances", right, stated, true, found=True)
    flagged = {name for name, item in stated.items() if item.broken} - {*truth["unsure"]}
    sheet.claims("broken", flagged & right, truth["broken"], false=len(flagged - right))
    move = truth["move"]
    bound = max(TOLERATED, move / 4) if truth["moved"] else TOLERATED + move
    target = _expected(document)
    off = _apart(target, truth["target"], truth["spread"])
    shown = {"test": _shown(truth["target"]), "train": _shown(truth["train"])}
    score = 1.0 if off <= bound else (move - off) / (move - bound) if truth["moved"] and off < move else 0.0
    sheet.mark("target", score, target, truth["target"], of=(int(truth["moved"]), int(off > bound)), **shown)
    changes, column, either = truth["changes"], document.changes, truth["open"]
    score, claimed = float(column == changes or column in either), column is not None and column not in either
    sheet.mark("changes", score, column, changes, of=(int(changes is not None), int(claimed)))


def _expected(document: ShiftAnalysis) -> dict[str, float]:
    """Return a document's expectation of the test set: the share of each class, or the mean under ""."""
    if not isinstance(document.target, dict):
        return {"": document.target}
    return {class_name(name): value for name, value in document.target.items()}


def _apart(answer: dict[str, float], true: dict[str, float], spread: float) -> float:
    """Return the largest difference; infinite if one is a number and the other classes."""
    if ("" in answer) != ("" in true):
        return float("inf")
    return max(abs(answer.get(name, 0.0) - true.get(name, 0.0)) for name in {*answer, *true}) / spread


def _shown(target: dict[str, float]) -> str:
    return ", ".join(f"{name} {plain(value, 4)}".strip() for name, value in target.items())


@dataclass(frozen=True)
class Advice:
    """Changes to the training table, as in a `ShiftAnalysis`.

    Attributes:
        by: The feature that orders the rows.
        target: The expected target of the test rows: the share of each class, or the mean under "".
    """

    drop: tuple[str, ...] = ()
    weights: str = "none"
    recent: float = 1.0
    by: str | None = None
    target: Mapping[str, float] = field(default_factory=dict)


class Adaptations(Study[Advice]):
    """Advice, judged on other parts of the private test set than those used to choose the strong one."""

    text = "{metric} of models of the training rows, on parts of the private test set"
    private = True

    def naive(self, instance: Instance) -> Advice:
        return Advice()

    def panel(self, instance: Instance) -> Sequence[Advice]:
        """Return selections of features and of recent rows, without weights."""
        truth, dataset = instance.truth, instance.dataset
        moment, target = truth["moment"], truth["target"]
        drifting = sorted(name for name, far in truth["distances"].items() if far > DRIFTS and name != moment)
        drops = dict.fromkeys([(), tuple(truth["broken"]), tuple(drifting)])
        planted = dataset.planted.get(KEY)
        recents = sorted({1.0, *((planted["recent"],) if planted else RECENT if moment else ())}, reverse=True)
        return [
            Advice(drop, "none", recent, moment, target)
            for drop in drops
            if len(drop) < len(dataset.features)
            for recent in recents
        ]

    def quick(self, instance: Instance) -> Sequence[Advice]:
        known = instance.dataset.planted[KEY]
        return [Advice(tuple(known["broken"]), "none", known["recent"], known["changes"])]

    def strong(self, instance: Instance) -> Advice:
        (drop, weights, recent), truth = instance.truth["strong"], instance.truth
        return Advice(tuple(drop), weights, recent, truth["changes"] or truth["moment"], truth["target"])

    def given(self, document: ShiftAnalysis, instance: Instance) -> Advice:
        drop = tuple(sorted({*document.drop} & {*instance.dataset.features}))
        return Advice(drop, document.weights, document.recent, document.changes, _expected(document))

    def told(self, option: Advice, instance: Instance) -> str:
        return f"{len(option.drop)} features left out, weights: {option.weights}, {option.recent:.0%} of the rows"

    def losses(self, instance: Instance, option: Advice, stage: Stage) -> Losses:
        parts = self.by_part(instance, option)
        return Losses(parts[::2] if stage == "chosen" else parts[1::2], 0.0, instance.dataset.sample)

    def by_part(self, instance: Instance, advice: Advice) -> Array:
        """Return the loss of the best model on each part of the test set."""
        target = advice.target if advice.weights == "target" else {}
        key = f"losses across {replace(advice, by=advice.by if advice.recent < 1 else None, target=target)}"
        return remembered(instance.dataset, key, lambda: _losses(instance, advice))


STUDY = Adaptations()


def reference(instance: Instance) -> dict[str, Any]:
    """Return broken features, the feature along which relations change, and the strong choice."""
    known = {"unsure": [], "open": [], **(instance.dataset.planted.get(KEY) or _measured(instance))}
    facts = {name: known[name] for name in ("broken", "unsure", "changes", "open")}
    facts |= {"broken": sorted(known["broken"]), "moment": known["changes"] or instance.dataset.time}
    known_instance = Instance(instance.dataset, {**instance.truth, **facts}, instance.base)
    chosen = STUDY.best(known_instance, STUDY.panel(known_instance))
    best = STUDY.best(known_instance, [replace(chosen, weights=weights) for weights in ("none", "covariate", "target")])
    return {**facts, "strong": [list(best.drop), best.weights, best.recent]}


def _measured(instance: Instance) -> dict[str, Any]:
    """Return the features whose relation with the target breaks on the test set and does harm, and the column along
    which relations change, so that recent rows are worth more than all rows.

    An uninformative feature is not broken, however far it drifts. Features that surely lose their skill are compared
    without each other, and rows with the better of the features with and without them. Where leaving out such a feature
    neither helps nor harms, either answer is right.
    """
    dataset = instance.dataset
    judge = Judge(replace(dataset, time=None))  # a drifting column looks like a time
    lost = {name: loss for name in dataset.features if (loss := _lost(judge, name)) > DOUBT}
    sure = {name for name, loss in lost.items() if loss > LOST}

    def without(names: set[str], recent: float) -> Array:
        drop = tuple(sorted(names))[: len(dataset.features) - 1]
        return STUDY.by_part(instance, Advice(drop, recent=recent, by=dataset.time))

    facts: dict[str, Any] = {"changes": None, "open": []}
    recent = 1.0
    if dataset.time is not None:
        best = {share: min((without(names, share) for names in (set(), sure)), key=np.mean) for share in (1.0, *RECENT)}
        newest = min(RECENT, key=lambda share: float(best[share].mean()))
        gain = difference(best[1.0], best[newest], 0.0).ratio
        facts["changes"] = dataset.time if gain > CHANGE else None
        facts["open"] = [dataset.time, None] if CHANCE < gain <= CHANGE else []
        # if only old rows are misleading, the feature itself is not at fault
        recent = newest if facts["changes"] else 1.0
    gains = {name: difference(without(sure - {name}, recent), without(sure | {name}, recent), 0.0) for name in lost}
    broken = [name for name, gain in gains.items() if gain.ratio > HARM and name in sure]
    unsure = [name for name, gain in gains.items() if gain.upper >= 0 and (name in sure or gain.ratio >= CHANCE)]
    return {"broken": broken, "unsure": [name for name in unsure if name not in broken], **facts}


def _lost(judge: Judge, name: str) -> float:
    """Return a feature's loss of skill from training to test, in standard errors; 0 if most of the skill is kept."""
    ours, theirs = judge.dataset.train[name], judge.dataset.test[name]
    if judge.dataset.kinds[name] == "text":
        view = of_values(name, *(values.fillna("").to_numpy(dtype=object) for values in (ours, theirs)))
    else:
        view = in_bins(name, ours.to_numpy(dtype=float), theirs.to_numpy(dtype=float), bins=BINS)
    skill = judge.skill(view, shifted=False)
    if skill.inside < TELLING or skill.outside > skill.inside / 2:
        return 0.0
    return float((skill.inside - skill.outside) / max(skill.error, 1e-9))


def _losses(instance: Instance, advice: Advice) -> Array:
    by = advice.by
    data = remembered(instance.dataset, "across", lambda: _pool(instance.dataset))
    rows = rows_of(data, data.splits[0], dict.fromkeys(advice.drop, _DROP))
    places = np.arange(len(rows.train))
    if advice.recent != 1:
        if by not in (*rows.columns, instance.dataset.time):  # ids may give the order
            raise ValueError(f"there is no feature {by!r} to determine recent rows")
        passed = moments(instance.dataset, rows.train) if by == instance.dataset.time else in_time(rows.train[by])
        order = np.argsort(passed.to_numpy(dtype=float), kind="stable")
        places = np.sort(order[-max(round(advice.recent * len(order)), 2) :])
    used = replace(rows, train=rows.train.iloc[places], codes=data.codes[places])
    trained, judged = matrices(used)
    weights = _weights(advice.weights, used, trained, judged, data.names, advice.target)
    split = replace(data.splits[0], train=places)
    predictions = predicted(data, split, (trained, judged), weights=weights)
    return of_best([*by_part(instance, data, split, predictions, PARTS)], instance.dataset)


def _pool(dataset: Dataset) -> Pool:
    """Return a pool of training and test rows, whose split separates the two tables."""
    rng = np.random.default_rng(0)
    small = [frame.iloc[np.sort(rng.permutation(len(frame))[:ROWS])] for frame in (dataset.train, dataset.test)]
    return across(replace(dataset, train=small[0], test=small[1]))


def _weights(
    kind: str, rows: Rows, trained: Array, judged: Array, names: Iterable[str], target: Mapping[str, float]
) -> Array | None:
    """Return the weights of the training rows: from the density ratio, or from the expected target."""
    if kind == "none":
        return None
    if kind == "covariate":  # S. Bickel et al., "Discriminative Learning Under Covariate Shift", JMLR 10 (2009)
        both = np.vstack([trained, judged])
        tables = np.eye(2)[np.repeat([0, 1], [len(trained), len(judged)])]
        odds = predict("linear", both, tables, trained, classes=True, seed=0)
        return np.asarray(np.clip(odds[:, 1] / odds[:, 0] * len(trained) / len(judged), 1 / RATIO, RATIO))
    if rows.classes:
        shares = np.array([max(target.get(name, 0.0), 1e-3) for name in names])
        known = np.bincount(rows.codes, minlength=len(shares)) / len(rows.codes)
        return np.asarray(np.clip(shares / np.maximum(known, 1e-3), 1 / RATIO, RATIO)[rows.codes])
    return _tilted(rows.codes, target[""])


def _tilted(values: Array, mean: float) -> Array:
    """Return exponential weights that give numbers a certain mean, limited to their 10 % and 90 % quantiles."""
    from scipy.optimize import brentq

    z = (values - values.mean()) / (values.std() + 1e-12)
    wanted = float(np.clip((mean - values.mean()) / (values.std() + 1e-12), *np.quantile(z, [0.1, 0.9])))
    slope = brentq(lambda k: np.average(z, weights=np.exp(np.clip(k * z, -30, 30))) - wanted, -20, 20)
    return np.asarray(np.clip(np.exp(np.clip(slope * z, -30, 30)), 1 / RATIO, RATIO))


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    truth = instance.truth
    drop, weights, recent = truth["strong"]
    features = [
        {"column": name, "distance": value, "broken": name in truth["broken"]}
        for name, value in truth["distances"].items()
    ]
    return {
        "features": features,
        "target": truth["target"].get("", truth["target"]),
        "changes": truth["changes"] if recent == 1 else truth["moment"],
        "drop": drop,
        "weights": weights,
        "recent": recent,
    }
