"""Group structure and drift over time: splits for which plain cross-validation is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mleredux_techniques._kit.dataset import Dataset, GroupColumn, Kind
from mleredux_techniques._kit.instances import (
    TEST_SHARE,
    fresh_names,
    lively,
    pooled,
    renumbered,
    resized,
    with_columns,
)

if TYPE_CHECKING:
    import pandas as pd

DATES = ("recorded", "logged", "entered", "noted", "filed")
START = np.datetime64("2019-01-01")


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Plant groups (4 of 9 seeds), drift over time (4 of 9), or neither; each with similar harmless columns."""
    kind = str(rng.choice(["groups"] * 4 + ["drift"] * 4 + ["none"]))
    rows = pooled(dataset)
    group = time = None
    names = fresh_names(dataset, rng, 2)
    dates = [str(name) for name in rng.permutation([name for name in DATES if name not in dataset.train.columns])]
    if kind == "groups":
        rows, codes = _grouped(dataset, rows, rng)
        drawn = rng.permutation(codes.max() + 1)
        test = np.isin(codes, drawn[: max(2, round(TEST_SHARE * len(drawn)))])
        group = names[0]
        members = _labels(codes, rng)
    else:
        members = _labels(rng.integers(0, max(8, len(rows) // 8), len(rows)), rng)
        test = np.zeros(len(rows), dtype=bool)
        test[rng.permutation(len(rows))[: round(TEST_SHARE * len(rows))]] = True
    moments = rng.random(len(rows))
    if kind == "drift":
        rows = _drifted(dataset, rows, moments, rng)
        test = moments >= np.quantile(moments, 1 - TEST_SHARE)
        time = dates[0]
    order = rng.permutation(len(rows))
    columns: dict[str, tuple[Any, Kind]] = {
        names[0]: (members, "text"),
        names[1]: (_labels(rng.integers(0, max(8, len(rows) // 8), len(rows)), rng), "text"),
        dates[0]: (_dates(moments), "text"),
        dates[1]: (_dates(rng.random(len(rows))), "text"),
    }
    ours, theirs = order[~test[order]], order[test[order]]
    made = replace(dataset, train=rows.iloc[ours].reset_index(drop=True), test=rows.iloc[theirs].reset_index(drop=True))
    made = with_columns(
        made, {name: (values[ours], values[theirs], held) for name, (values, held) in columns.items()}, rng
    )
    made = replace(
        made,
        group=GroupColumn(group) if group else None,
        time=time,
        planted={"kinds": [] if kind == "none" else [kind]},
    )
    return resized(renumbered(made, rng))


def _grouped(dataset: Dataset, rows: pd.DataFrame, rng: np.random.Generator) -> tuple[pd.DataFrame, Any]:
    """Repeat measurements of fewer objects: a row's features with a little noise, its target unchanged."""
    size = int(rng.integers(3, 7))
    things = rng.permutation(len(rows))[: max(12, len(rows) // size)]
    sizes = np.maximum(2, rng.poisson(size, len(things)))
    codes = np.repeat(np.arange(len(things)), sizes)
    made = rows.iloc[things[codes]].reset_index(drop=True)
    for name in lively(dataset):
        values = made[name].to_numpy(dtype=float)
        noisy = values + rng.normal(0, 0.1 * (float(np.nanstd(values)) or 1.0), len(values))
        whole = bool((dataset.train[name].dropna() % 1 == 0).all())
        made[name] = np.round(noisy) if whole else np.round(noisy, 6)
    return made, codes


def _drifted(dataset: Dataset, rows: pd.DataFrame, moments: Any, rng: np.random.Generator) -> pd.DataFrame:
    """Let up to half of the features drift with time, each at its own rate; the targets stay."""
    made = rows.copy()
    usable = lively(dataset)
    for name in [str(name) for name in rng.permutation(usable)[: max(1, len(usable) // 2)]]:
        values = made[name].to_numpy(dtype=float)
        pace = float(rng.uniform(1.0, 2.5)) * float(rng.choice([-1, 1]))
        moved = values + pace * float(np.nanstd(values)) * moments**2
        whole = bool((dataset.train[name].dropna() % 1 == 0).all())
        made[name] = np.round(moved) if whole else np.round(moved, 6)
    return made


def _labels(codes: Any, rng: np.random.Generator) -> Any:
    """Return codes as texts in random order."""
    shuffled = rng.permutation(int(codes.max()) + 1)
    letter = str(rng.choice(list("ABCDEFGHKLMNPRST")))
    return np.array([f"{letter}{shuffled[code]:05d}" for code in codes], dtype=object)


def _dates(moments: Any) -> Any:
    """Convert times from 0 to 1 to dates within three years."""
    days = (moments * 3 * 365 * 24 * 60).astype("timedelta64[m]")
    return np.array([str(moment).replace("T", " ") for moment in START.astype("datetime64[m]") + days], dtype=object)
