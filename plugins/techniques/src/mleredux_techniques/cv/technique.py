"""Group structure and drift over time: splits for which plain cross-validation is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Dataset, Frame, GroupColumn
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.planting import instances
from mleredux_techniques._kit.planting.generation import reworded

DATES = ("recorded", "logged", "entered", "noted", "filed")
START = np.datetime64("2019-01-01")


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Plant groups (in 2 of 5 instances), drift over time (in 2 of 5) or neither; times are dates or numbers."""
    kind = str(rng.choice(["groups", "groups", "drift", "drift", "none"]))
    rows = dataset.rows
    group = time = None
    names = instances.fresh_names(dataset, rng, 2)
    dates = [str(name) for name in rng.permutation([name for name in DATES if name not in dataset.train.columns])]
    if kind == "groups":
        rows, codes = _grouped(dataset, rows, rng)
        drawn = rng.permutation(codes.max() + 1)
        test = np.isin(codes, drawn[: max(2, round(instances.TEST_SHARE * len(drawn)))])
        group = names[0]
        members = _labels(codes, rng)
    else:
        members = _labels(rng.integers(0, max(8, len(rows) // 8), len(rows)), rng)
        test = np.zeros(len(rows), dtype=bool)
        test[rng.permutation(len(rows))[: round(instances.TEST_SHARE * len(rows))]] = True
    moments = rng.random(len(rows))
    if kind == "drift":
        test = moments >= np.quantile(moments, 1 - instances.TEST_SHARE)
        time = dates[0]
    order, numbered = rng.permutation(len(rows)), bool(rng.random() < 0.5)
    columns = {
        names[0]: members,
        names[1]: _labels(rng.integers(0, max(8, len(rows) // 8), len(rows)), rng),
        dates[0]: _moments(moments, numbered),
        dates[1]: _moments(rng.random(len(rows)), numbered),
    }
    if kind == "drift":
        drifting = instances.fresh_names(dataset, rng, 5)[2:]
        columns |= {name: _drifting(dataset, rows, moments, rng) for name in drifting}
    ours, theirs = order[~test[order]], order[test[order]]
    data = replace(dataset, train=rows.iloc[ours].reset_index(drop=True), test=rows.iloc[theirs].reset_index(drop=True))
    placed = {name: values[np.concatenate([ours, theirs])] for name, values in columns.items()}
    data = instances.with_level(instances.with_values(data, placed, rng), rng)
    data = replace(data, group=GroupColumn(group) if group else None, time=time)
    return instances.merged(instances.resized(data), [] if kind == "none" else [kind])


def _grouped(dataset: Dataset, rows: Frame, rng: np.random.Generator) -> tuple[Frame, Any]:
    """Repeat fewer objects as noisy measurements: features get a little noise, targets stay unchanged."""
    size = int(rng.integers(5, 9))
    things = rng.permutation(len(rows))[: max(12, len(rows) // size)]
    sizes = np.maximum(2, rng.poisson(size, len(things)))
    codes = np.repeat(np.arange(len(things)), sizes)
    repeated = reworded(dataset, rows.iloc[things[codes]].reset_index(drop=True), rng)
    for name in instances.lively(dataset):
        values = repeated[name].to_numpy(dtype=float)
        noisy = values + rng.normal(0, 0.05 * (float(np.nanstd(values)) or 1.0), len(values))
        whole = bool((dataset.train[name].dropna() % 1 == 0).all())
        repeated[name] = np.round(noisy) if whole else np.round(noisy, 6)
    return repeated, codes


def _drifting(dataset: Dataset, rows: Frame, moments: Any, rng: np.random.Generator) -> Any:
    """Return a column whose relation with the target reverses over time."""
    apart = replace(dataset, train=rows, test=rows.iloc[:0])
    level = instances.levels(apart, rng, noise=0.3)
    pace = float(rng.uniform(0.9, 1.0))
    turned = level * np.cos(np.pi * pace * moments) + 0.3 * rng.standard_normal(len(rows))
    return np.round(turned * float(rng.uniform(0.5, 20)) + float(rng.uniform(-30, 30)), 3)


def _labels(codes: Any, rng: np.random.Generator) -> Any:
    """Return codes as texts in random order."""
    shuffled = rng.permutation(int(codes.max()) + 1)
    letter = str(rng.choice(list("ABCDEFGHKLMNPRST")))
    return np.array([f"{letter}{shuffled[code]:05d}" for code in codes], dtype=object)


def _moments(moments: Any, numbered: bool) -> Any:
    """Return times from 0 to 1 as seconds, or as dates within three years."""
    if numbered:
        return np.round(moments * 1e6)
    days = (moments * 3 * 365 * 24 * 60).astype("timedelta64[m]")
    return np.array([str(moment).replace("T", " ") for moment in START.astype("datetime64[m]") + days], dtype=object)


technique = declared(__package__, plant)
