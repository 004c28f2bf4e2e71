"""Efficacy of selections and target transforms: the competition's metric of the reference models on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from mleredux_techniques._kit.data.association import ranks
from mleredux_techniques._kit.data.dataset import Instance
from mleredux_techniques._kit.data.splits import Pool, Split, pool
from mleredux_techniques._kit.judging import plans
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference
from mleredux_techniques._kit.judging.plans import (
    QUICK,
    QUICK_ROWS,
    best_of,
    by_split,
    choosing_pool,
    judged,
    rows_of,
    split_losses,
)
from mleredux_techniques._kit.judging.reference import MODELS, Model, predict
from mleredux_techniques._kit.judging.results import Efficacy
from mleredux_techniques._kit.vocabulary.encoders import DropFeature
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing, matrices
from mleredux_techniques.features.document import FeaturesAnalysis, Transform
from mleredux_techniques.features.facts import KEY

Array = np.ndarray[Any, Any]
Change = Callable[[Array], Array]
WEAK = 0.1
_DROP = Preprocessing(encoding=DropFeature(name="drop"))


def measure(document: FeaturesAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommended selection and transform."""
    one, features = pool(instance.dataset), instance.dataset.features
    given = {item.column for item in document.features if not item.keep} & {*features}
    drop, transform = instance.truth["strong"]

    def choice(dropped: Iterable[str], how: Transform) -> Choice:
        left = len(features) - len({*dropped})
        return Choice(losses(instance, one, dropped, how), f"{left} of {len(features)} features, target: {how}")

    return judged(instance, one, choice((), "none"), choice(drop, transform), choice(given, document.transform))


def reference(instance: Instance) -> dict[str, Any]:
    """Return the strong choice by other splits: the best selection, then the best transform with it."""
    dataset, one = instance.dataset, choosing_pool(instance)
    facts = instance.truth
    nothing = [name for name, what in facts["tells"].items() if what == "nothing"]
    told = {name for name, what in facts["tells"].items() if what == "together"}
    weak = [name for name, value in facts["strengths"].items() if value < WEAK and name not in told]
    twice = sorted({*nothing, *(pair[1] for pair in facts["copies"])})
    drops = {"all": (), "those that tell": nothing, "each once": twice, "strong ones": weak}
    drops = {name: drop for name, drop in drops.items() if len(drop) < len(dataset.features)}
    drop = drops[best_of(drops, lambda name: losses(instance, one, drops[name], "none"), one.overlap)]
    options: dict[str, Transform] = {"none": "none"}
    if dataset.problem == "regression":
        options |= {"sqrt": "sqrt", "log1p": "log1p", "rank": "rank"}
    best = best_of(options, lambda name: losses(instance, one, drop, options[name]), one.overlap)
    return {"strong": [list(drop), best]}


def gap(instance: Instance) -> Difference:
    """Return what leaving out what tells nothing gains, with logarithms of numbers if these are better, quickly."""
    one = pool(instance.dataset, max_rows=QUICK_ROWS, repeats=1)
    drop = instance.dataset.planted[KEY]["nothing"]
    options: tuple[Transform, ...] = ("none", "log1p") if instance.dataset.problem == "regression" else ("none",)
    told = [losses(instance, one, drop, how, QUICK) for how in options]
    naive = losses(instance, one, (), "none", QUICK)
    return difference(naive, min(told, key=lambda values: float(values.mean())), one.overlap)


def losses(
    instance: Instance, one: Pool, dropped: Iterable[str], transform: Transform, models: Sequence[Model] = MODELS
) -> Array:
    """Return the losses of the models by split, with some features left out and a transformed target."""
    plan = dict.fromkeys(sorted(dropped), _DROP)
    if transform == "none":
        return plans.losses(instance, one, plan, models)
    if one.dataset.problem != "regression":
        raise ValueError("the target is a class, which is not transformed")
    found = partial(_loss, instance, one, plan, transform, models)
    return by_split(one, f"{models} {[*plan]} {transform}", found)


def _loss(
    instance: Instance, one: Pool, plan: plans.Plan, transform: Transform, models: Sequence[Model], split: Split
) -> Array:
    trained, judged = matrices(rows_of(one, split, plan))
    known = one.codes[split.train]
    forth, back = changes(transform, known)
    y = forth(known)
    middle, spread = y.mean(), y.std() + 1e-12
    made = (y - middle)[:, None] / spread
    told = [predict(name, trained, made, judged, classes=False, seed=split.seed) for name in models]
    scale = one.codes.std() + 1e-12
    return split_losses(
        instance, one, split, [(back(part * spread + middle) - one.codes.mean()) / scale for part in told]
    )


def changes(transform: Transform, known: Array) -> tuple[Change, Change]:
    """Return a transform of numbers, fitted to known ones, and its inverse."""
    low, ordered = known.min(), np.sort(known)
    normal = np.sort(ndtri((ranks(known) - 0.5) / len(known)))
    found: dict[str, tuple[Change, Change]] = {
        "none": (np.asarray, np.asarray),
        "sqrt": (lambda y: np.sqrt(y - low), lambda z: np.maximum(z, 0) ** 2 + low),
        "log1p": (lambda y: np.log1p(y - low), lambda z: np.expm1(np.clip(z, 0, 700)) + low),
        "rank": (lambda y: np.interp(y, ordered, normal), lambda z: np.interp(z, normal, ordered)),
    }
    return found[transform]
