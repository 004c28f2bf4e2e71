"""Efficacy of advice on drift: the competition's metric of the reference models on parts of the private test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Instance
from mleredux_techniques._kit.data.memory import remembered
from mleredux_techniques._kit.data.skill import Judge
from mleredux_techniques._kit.data.splits import Pool, Split, parts_of
from mleredux_techniques._kit.data.structure import in_time, moments
from mleredux_techniques._kit.data.views import in_bins, of_values
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference, judge
from mleredux_techniques._kit.judging.plans import best_of, of_best, split_losses
from mleredux_techniques._kit.judging.reference import MODELS, predict
from mleredux_techniques._kit.judging.results import Efficacy
from mleredux_techniques._kit.judging.scorer import scorer
from mleredux_techniques._kit.planting.competition import across
from mleredux_techniques._kit.vocabulary.encoders import DropFeature
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing, Rows, matrices
from mleredux_techniques.shift.document import ShiftAnalysis
from mleredux_techniques.shift.facts import KEY

Array = np.ndarray[Any, Any]
ROWS, PARTS = 2_400, 20
DRIFTS, RECENT, BINS = 0.1, 0.5, 16
"""Features with a larger distance drift, and recent rows are this share of all, unless planted."""
TELLING, DOUBT, LOST = 0.1, 2.0, 4.0
"""A feature tells something if its skill in training is at least the first; its loss on the test counts above the last
number of standard errors, and may be one above the second."""
HARM, CHANCE, CHANGE = 3.0, 1.5, 4.0
"""A feature is broken, or may be, if leaving it out gains this number of standard errors; so for recent rows."""
RATIO = 10.0
_MEASURE = "{metric} of models of the training rows, on parts of the private test"
_DROP = Preprocessing(encoding=DropFeature(name="drop"))


@dataclass(frozen=True)
class Advice:
    """What is done with the training table, as in a `ShiftAnalysis`."""

    drop: tuple[str, ...] = ()
    weights: str = "none"
    recent: float = 1.0


def measure(document: ShiftAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommendation; choices are judged on other rows of the test than the strong one was chosen on."""
    truth, dataset = instance.truth, instance.dataset
    drop, weights, recent = truth["strong"]
    told = document.target if isinstance(document.target, dict) else {"": document.target}
    target = {class_name(name) if name else "": value for name, value in told.items()}
    given = Advice(tuple(sorted({*document.drop} & {*dataset.features})), document.weights, document.recent)

    def choice(advice: Advice, by: str | None, expected: dict[str, float]) -> Choice:
        what = f"{len(advice.drop)} features left out, weights: {advice.weights}, {advice.recent:.0%} of the rows"
        return Choice(losses(instance, advice, by, expected)[1::2], what)

    made = judge(
        choice(Advice(), None, {}),
        choice(Advice(tuple(drop), weights, recent), truth["changes"] or truth["moment"], truth["target"]),
        choice(given, document.changes, target),
        overlap=0.0, scorer=scorer(dataset, instance.base), measure=_MEASURE, sample=dataset.sample,
    )  # fmt: skip
    return replace(made, training=None)  # judged by labels of the private test


def reference(instance: Instance) -> dict[str, Any]:
    """Return broken features, the feature along which relations change, and the strong choice."""
    dataset, truth = instance.dataset, instance.truth
    known = dataset.planted.get(KEY) or _measured(instance)
    broken, moment = tuple(sorted(known["broken"])), known["changes"] or dataset.time
    drifting = tuple(sorted(name for name, far in truth["distances"].items() if far > DRIFTS and name != moment))
    recents = sorted({1.0, known.get("recent", RECENT)}, reverse=True) if moment else [1.0]
    drops = [drop for drop in dict.fromkeys([(), broken, drifting]) if len(drop) < len(dataset.features)]

    def best(options: list[Advice]) -> Advice:
        named = {f"{advice}": advice for advice in options}
        return named[best_of(named, lambda name: losses(instance, named[name], moment, truth["target"])[::2], 0.0)]

    chosen = best([Advice(drop, "none", recent) for drop in drops for recent in recents])
    chosen = best([replace(chosen, weights=weights) for weights in ("none", "covariate", "target")])
    found = {"unsure": [], "open": [], **known}
    return {
        **{name: found[name] for name in ("broken", "unsure", "changes", "open")},
        "moment": moment,
        "strong": [list(chosen.drop), chosen.weights, chosen.recent],
    }


def gap(instance: Instance) -> Difference:
    """Return what leaving out broken features and old rows gains."""
    known = instance.dataset.planted[KEY]
    advice = Advice(tuple(known["broken"]), "none", known["recent"])
    naive, strong = (losses(instance, one, known["changes"], {})[1::2] for one in (Advice(), advice))
    return difference(naive, strong, 0.0)


def _measured(instance: Instance) -> dict[str, Any]:
    """Return the features whose relation with the target is lost on the test, with harm, and the column along which
    relations change, so that recent rows are worth more than all.

    A feature that tells nothing is not broken, however far it drifts.
    """
    dataset = instance.dataset
    judge = Judge(replace(dataset, time=None))  # a column that drifts looks like a time
    lost = {name: loss for name in dataset.features if (loss := _lost(judge, name)) > DOUBT}
    found: dict[str, Any] = {"changes": None, "open": []}
    if dataset.time is not None:
        every, new = (losses(instance, Advice(recent=share), dataset.time, {}) for share in (1.0, RECENT))
        gain = difference(every, new, 0.0).ratio
        found["changes"] = dataset.time if gain > CHANGE else None
        found["open"] = [dataset.time, None] if CHANCE < gain <= CHANGE else []
    # what only old rows say of a feature is no fault of the feature
    advice = Advice(recent=RECENT if found["changes"] else 1.0)
    naive = losses(instance, advice, dataset.time, {})
    without = {name: losses(instance, replace(advice, drop=(name,)), dataset.time, {}) for name in lost}
    gains = {name: difference(naive, those, 0.0).ratio for name, those in without.items()}
    broken = [name for name, gain in gains.items() if gain > HARM and lost[name] > LOST]
    unsure = [name for name, gain in gains.items() if gain >= CHANCE and name not in broken]
    return {"broken": broken, "unsure": unsure, **found}


def _lost(judge: Judge, name: str) -> float:
    """Return by how many standard errors a feature tells less on the test than in training; 0 if more than half."""
    ours, theirs = judge.dataset.train[name], judge.dataset.test[name]
    if judge.dataset.kinds[name] == "text":
        texts = (values.fillna("").to_numpy(dtype=object) for values in (ours, theirs))
        view = of_values(name, *texts)
    else:
        view = in_bins(name, ours.to_numpy(dtype=float), theirs.to_numpy(dtype=float), bins=BINS)
    skill = judge.skill(view, shifted=False)
    if skill.inside < TELLING or skill.outside > skill.inside / 2:
        return 0.0
    return float((skill.inside - skill.outside) / max(skill.error, 1e-9))


def losses(instance: Instance, advice: Advice, by: str | None, target: dict[str, float]) -> Array:
    """Return the loss of the best model on each part of the test.

    Args:
        by: The feature that orders the rows.
        target: What is expected of the test rows: the share of each class, or the mean of the target under "".
    """
    key = f"losses across {advice} {by} {target if advice.weights == 'target' else ''}"
    return remembered(instance.dataset, key, lambda: _losses(instance, advice, by, target))


def _losses(instance: Instance, advice: Advice, by: str | None, target: dict[str, float]) -> Array:
    one, rows = remembered(instance.dataset, "across", lambda: _pool(instance))
    places = np.arange(len(rows.train))
    if advice.recent != 1:
        if by not in rows.columns:
            raise ValueError(f"there is no feature {by!r}, by which rows are recent")
        passed = moments(instance.dataset, rows.train) if by == instance.dataset.time else in_time(rows.train[by])
        order = np.argsort(passed.to_numpy(dtype=float), kind="stable")
        places = np.sort(order[-max(round(advice.recent * len(order)), 2) :])
    used = replace(rows, train=rows.train.iloc[places], codes=one.codes[places], how=dict.fromkeys(advice.drop, _DROP))
    trained, judged = matrices(used)
    weights = _weights(advice.weights, used, trained, judged, one.names, target)
    told = [
        predict(model, trained, one.y[places], judged, classes=rows.classes, seed=0, weights=weights)
        for model in MODELS
    ]
    start = len(rows.train)
    parts = parts_of(len(judged), PARTS)
    found = [
        split_losses(instance, one, Split(places, start + part, 0), [values[part] for values in told]) for part in parts
    ]
    return of_best(found, instance.dataset)


def _pool(instance: Instance) -> tuple[Pool, Rows]:
    """Return some training and test rows, all splits of which are those of both tables."""
    dataset, rng = instance.dataset, np.random.default_rng(0)
    small = [frame.iloc[np.sort(rng.permutation(len(frame))[:ROWS])] for frame in (dataset.train, dataset.test)]
    one, rows = across(replace(dataset, train=small[0], test=small[1]), {})
    return replace(one, dataset=dataset), rows


def _weights(
    kind: str, rows: Rows, trained: Array, judged: Array, names: Iterable[str], target: dict[str, float]
) -> Array | None:
    """Return the weights of the training rows: by the density ratio, or by what is expected of the target."""
    if kind == "none":
        return None
    if kind == "covariate":  # S. Bickel et al., "Discriminative Learning Under Covariate Shift", JMLR 10 (2009)
        both = np.vstack([trained, judged])
        told = predict(
            "linear", both, np.eye(2)[(np.arange(len(both)) >= len(trained)).astype(int)], trained, classes=True, seed=0
        )
        return np.asarray(np.clip(told[:, 1] / told[:, 0] * len(trained) / len(judged), 1 / RATIO, RATIO))
    if rows.classes:
        shares = np.array([max(target.get(name, 0.0), 1e-3) for name in names])
        known = np.bincount(rows.codes, minlength=len(shares)) / len(rows.codes)
        return np.asarray(np.clip(shares / np.maximum(known, 1e-3), 1 / RATIO, RATIO)[rows.codes])
    return _tilted(rows.codes, target[""])


def _tilted(values: Array, mean: float) -> Array:
    """Return exponential weights by which numbers have a mean, as far as the range of their quantiles permits."""
    from scipy.optimize import brentq

    z = (values - values.mean()) / (values.std() + 1e-12)
    wanted = float(np.clip((mean - values.mean()) / (values.std() + 1e-12), *np.quantile(z, [0.1, 0.9])))
    slope = brentq(lambda k: np.average(z, weights=np.exp(np.clip(k * z, -30, 30))) - wanted, -20, 20)
    return np.asarray(np.clip(np.exp(np.clip(slope * z, -30, 30)), 1 / RATIO, RATIO))
