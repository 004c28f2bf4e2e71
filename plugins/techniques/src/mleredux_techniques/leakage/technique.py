"""Leaks: columns that predict the target in the training table, but not in the test table.

In the test table, a leaking column has uninformative values of the same kind, as if the true value were not yet known
at prediction time. Other new columns are harmless, so that novelty is not a hint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.planting import instances
from mleredux_techniques._kit.planting.generation import reworded

ACCEPTED = {"text_value": ["future_value", "copy", "noisy_copy"]}
"""The accepted kinds for a leak: text that reveals the target may be any of three."""
HONEST = 3
"""Number of new columns that are equally predictive in both tables."""


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Plant one to three leaks of different kinds, and harmless new columns of the same forms."""
    possible = [kind for kind in KINDS if kind != "duplicate_rows" or (dataset.group is None and dataset.time is None)]
    kinds = [str(kind) for kind in rng.permutation(possible)[: int(rng.integers(1, 4))]]
    names = instances.fresh_names(dataset, rng, 6)
    columns: dict[str, Array] = {}
    leaks: list[dict[str, Any]] = []
    for kind in kinds:
        if kind in COLUMNS:
            name = names.pop()
            values = COLUMNS[kind](dataset, rng)
            columns[name] = np.concatenate([values, rng.choice(values, len(dataset.test))])  # uninformative in the test
            leaks.append({"kinds": ACCEPTED.get(kind, [kind]), "columns": [name], "planted": True})
    for number, name in enumerate(names):
        columns[name] = _honest(dataset, rng) if number < HONEST else _harmless(dataset, rng)
    shuffled = {name: columns[name] for name in rng.permutation(list(columns))}
    data = instances.with_values(dataset, shuffled, rng)
    if "duplicate_rows" in kinds:
        data = _duplicate(data, rng)
        leaks.append({"kinds": ["duplicate_rows"], "columns": [], "planted": True})
    if "id_order" in kinds:
        data = _order(data, rng)
        leaks.append({"kinds": ["id_order"], "columns": list(data.ids), "planted": True})
    return instances.merged(instances.resized(data), kinds, leaks=leaks)


def _honest(dataset: Dataset, rng: np.random.Generator) -> Array:
    """Return a column that looks like a leak but is equally predictive in both tables."""
    level = instances.levels(dataset, rng, noise=float(rng.uniform(0.6, 1.0)))
    form = int(rng.integers(3))
    if form == 0:
        edges = np.quantile(level[: len(dataset.train)], np.linspace(0, 1, 13)[1:-1])
        return np.asarray(_codes_of(rng, 12)[np.searchsorted(edges, level)])
    if form == 1:
        return np.round(np.where(level > 0.8, np.exp(2 + level), 0.0), 2)
    return np.round(level * float(rng.uniform(0.5, 20)) + float(rng.uniform(-50, 50)), 4)


def _codes_of(rng: np.random.Generator, count: int) -> Array:
    letter = str(rng.choice(list("ABCDEFGHKLMNPRST")))
    return np.array([f"{letter}{code}" for code in rng.permutation(900)[:count] + 100], dtype=object)


def _text_value(dataset: Dataset, rng: np.random.Generator) -> Array:
    """Return codes that each stand for one class, or for high or low targets, with errors."""
    signal = instances.target_signal(dataset, dataset.train, rng)
    high = signal > (np.median(signal) if dataset.problem == "regression" else 0.5)
    high = high ^ (rng.random(len(high)) < 0.1)
    codes = _codes_of(rng, 24)
    drawn = rng.integers(0, 12, len(high))
    return np.asarray(np.where(high, codes[drawn], codes[12 + drawn]), dtype=object)


def _codes(dataset: Dataset, rng: np.random.Generator) -> Array:
    """Return the target as numbers in another unit: an affine transform, or a code for each class."""
    target = dataset.train[dataset.target]
    scale, shift = float(rng.uniform(0.5, 20)), float(rng.uniform(-50, 50))
    if dataset.problem == "regression":
        return np.asarray(target.to_numpy(dtype=float) * scale + shift)
    classes = sorted(set(target))
    codes = dict(zip(classes, rng.permutation(len(classes)), strict=True))
    return np.asarray(target.map(codes).to_numpy(dtype=float) * round(scale, 1) + round(shift))


def _noisy_copy(dataset: Dataset, rng: np.random.Generator) -> Array:
    """Return noisy targets; a tenth of the rows get another row's target."""
    codes = _codes(dataset, rng)
    wrong = rng.random(len(codes)) < 0.1
    mixed = np.where(wrong, rng.permutation(codes), codes)
    steps = [codes.std()] if dataset.problem == "regression" else np.diff(np.unique(codes)).tolist()
    return np.asarray(np.round(mixed + rng.normal(0, 0.15 * min(steps, default=1.0), len(mixed)), 4))


def _target_encoding(dataset: Dataset, rng: np.random.Generator) -> Array:
    """Return the mean target of small random groups, including the row itself."""
    signal = instances.target_signal(dataset, dataset.train, rng)
    groups = rng.permutation(np.arange(len(signal)) // 3)
    sums, sizes = np.bincount(groups, weights=signal), np.bincount(groups)
    return np.asarray(np.round((sums / sizes)[groups], 5))


def _future_value(dataset: Dataset, rng: np.random.Generator) -> Array:
    """Return an amount recorded after the target is known, for rows of one class, or with high targets."""
    signal = instances.target_signal(dataset, dataset.train, rng)
    due = signal > (np.quantile(signal, 0.6) if dataset.problem == "regression" else 0.5)
    booked = due & (rng.random(len(signal)) < 0.9)
    amounts = np.exp(rng.normal(3, 0.6, len(signal)))
    return np.round(np.where(booked, amounts, 0.0), 2)


def _harmless(dataset: Dataset, rng: np.random.Generator) -> Array:
    """Return a harmless column: a feature with noise, the same in both tables."""
    usable, whole = instances.lively(dataset), dataset.rows
    noise = rng.normal(0, 1, len(whole))
    if usable:
        values = whole[usable[int(rng.integers(len(usable)))]].to_numpy(float)
        noise = 0.5 * instances.standardised(values) + noise
    forms = np.round(noise, 4), np.round(np.exp(noise + 2), 2), np.floor(noise * 3 + 20)
    return forms[int(rng.integers(3))]


def _duplicate(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Add some of the test rows to the training table, with their targets."""
    import pandas as pd

    count = max(1, round(float(rng.uniform(0.15, 0.3)) * len(dataset.test)))
    copies = reworded(dataset, dataset.test.iloc[np.sort(rng.permutation(len(dataset.test))[:count])], rng)
    train = pd.concat([dataset.train, copies], ignore_index=True).iloc[rng.permutation(len(dataset.train) + count)]
    data = replace(dataset, train=train.reset_index(drop=True))
    for name in dataset.ids:  # the copies get new ids
        repeated = data.train[name].isin(set(dataset.test[name])).to_numpy()
        taken = pd.concat([dataset.train[name], dataset.test[name]])
        if dataset.kinds[name] == "number":
            fresh: list[Any] = list(int(taken.max()) + 1 + np.arange(repeated.sum()))
        else:
            fresh = [f"{value}x" for value in data.train.loc[repeated, name]]
        data.train[name] = data.train[name].astype(object if dataset.kinds[name] != "number" else float)
        data.train.loc[repeated, name] = fresh
    return data


def _order(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Sort and number training rows nearly in the order of their targets; test rows randomly."""
    if not dataset.ids:
        ours, theirs = (frame.assign(id=0) for frame in (dataset.train, dataset.test))
        dataset = replace(dataset, train=ours, test=theirs, ids=("id",), kinds={**dataset.kinds, "id": "number"})
    target = dataset.train[dataset.target]
    if dataset.problem != "regression":
        classes = [str(name) for name in rng.permutation(sorted(set(target)))]
        target = target.map({name: place for place, name in enumerate(classes)})
    level = instances.standardised(target.to_numpy(dtype=float))
    order = np.argsort(level + rng.normal(0, 0.4, len(level)), kind="stable")
    train, test = dataset.train.iloc[order].reset_index(drop=True), dataset.test.copy()
    numbers = rng.permutation(len(train) + len(test))
    for name in dataset.ids:
        for frame, own in ((train, np.sort(numbers[: len(train)])), (test, numbers[len(train) :])):
            frame[name] = own if dataset.kinds[name] == "number" else [f"r{number:07d}" for number in own]
    columns = [*dataset.ids, *dataset.features, *dataset.targets]
    return replace(dataset, train=train[columns], test=test[columns])


COLUMNS: dict[str, Callable[[Dataset, np.random.Generator], Array]] = {
    "copy": _codes,
    "noisy_copy": _noisy_copy,
    "target_encoding": _target_encoding,
    "future_value": _future_value,
    "text_value": _text_value,
}
KINDS = (*COLUMNS, "id_order", "duplicate_rows")
technique = declared(__package__, plant)
