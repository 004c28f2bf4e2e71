"""Planted instances: a seeded random generator, neutral names, columns to change, and pooled rows."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from mleredux.errors import NotApplicable

from mleredux_techniques._kit.dataset import Dataset, Kind

if TYPE_CHECKING:
    import pandas as pd

    from mleredux_techniques._kit.spec import TechniqueSpec

Array = np.ndarray[Any, Any]
WORDS = ("batch", "series", "unit", "lot", "case", "panel", "station", "cohort", "channel", "rack", "line", "source")
TEST_SHARE = 0.3


def plant(dataset: Dataset, technique: TechniqueSpec, seed: int) -> Dataset:
    """Return the instance of a seed: the data with changes recorded in `planted`; equal seeds give equal data.

    Raises:
        NotApplicable: The technique plants nothing, or the data has too little to change; the message says what.
    """
    if technique.plant is None:
        raise NotApplicable(f"Technique {technique.id} has no planted instances.")
    return technique.plant(dataset, chance(technique.id, seed, dataset))


def chance(technique: str, seed: int, dataset: Dataset) -> np.random.Generator:
    """Return the random generator of one instance, unique to its technique, seed and task."""
    digest = hashlib.sha256(f"{technique}:{seed}:{dataset.task}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def fresh_names(dataset: Dataset, rng: np.random.Generator, count: int) -> list[str]:
    """Return neutral names that are not in use."""
    taken = {name.lower() for name in dataset.train.columns}
    names = [word for word in rng.permutation(WORDS) if word not in taken]
    names += [f"{word}_{number}" for number in range(2, 5) for word in names]
    return [str(name) for name in names[:count]]


def lively(dataset: Dataset, *, distinct: int = 8, most: float = 0.7) -> list[str]:
    """Return numeric features with enough distinct values, none of which fills more than a share of the rows."""
    found = []
    for name in dataset.of_kind("number"):
        values = dataset.train[name].dropna()
        if len(values) < 0.9 * len(dataset.train) or values.nunique() < distinct:
            continue
        if values.value_counts(normalize=True).iloc[0] <= most:
            found.append(name)
    return found


def need(dataset: Dataset, technique: str, found: list[str], count: int, what: str) -> None:
    """Check that there are enough columns.

    Raises:
        NotApplicable: There are too few.
    """
    if len(found) < count:
        raise NotApplicable(
            f"{technique}+planted does not apply to {dataset.task}: it needs {count} {what}, but has {len(found)}."
        )


def standardised(values: Array) -> Array:
    """Standardize to mean 0 and standard deviation 1; missing values become 0."""
    spread = float(np.nanstd(values)) or 1.0
    return np.asarray(np.nan_to_num((values - np.nanmean(values)) / spread))


def with_columns(dataset: Dataset, columns: dict[str, tuple[Any, Any, Kind]], rng: np.random.Generator) -> Dataset:
    """Add features (values of the training rows, of the test rows, kind) at random positions."""
    train, test = dataset.train.copy(), dataset.test.copy()
    features = list(dataset.features)
    for name, (ours, theirs, _kind) in columns.items():
        train[name], test[name] = ours, theirs
        features.insert(int(rng.integers(len(features) + 1)), name)
    kinds = {**dataset.kinds, **{name: kind for name, (_ours, _theirs, kind) in columns.items()}}
    order = [*dataset.ids, *features, *dataset.targets]
    return replace(dataset, train=train[order], test=test[order], features=tuple(features), kinds=kinds)


def pooled(dataset: Dataset) -> pd.DataFrame:
    """Return all rows, those of the training table first."""
    import pandas as pd

    return pd.concat([dataset.train, dataset.test], ignore_index=True)


def renumbered(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Assign new ids in random order, so that they reveal nothing about the changes; the id columns stay the same."""
    if not dataset.ids:
        return dataset
    count = len(dataset.train) + len(dataset.test)
    numbers = rng.permutation(count)
    train, test = dataset.train.copy(), dataset.test.copy()
    for name in dataset.ids:
        values = numbers if dataset.kinds[name] == "number" else np.array([f"r{n:07d}" for n in numbers], dtype=object)
        train[name], test[name] = values[: len(train)], values[len(train) :]
    return replace(dataset, train=train, test=test)


def resized(dataset: Dataset) -> Dataset:
    """Update the row counts and reset the index."""
    train, test = dataset.train.reset_index(drop=True), dataset.test.reset_index(drop=True)
    return replace(dataset, train=train, test=test, train_rows=len(train), test_rows=len(test))


def target_signal(dataset: Dataset, frame: pd.DataFrame, rng: np.random.Generator) -> Array:
    """Return the target as standardized numbers: unchanged, or one class against the rest."""
    if dataset.problem == "regression":
        values = dataset.train[dataset.target].to_numpy(dtype=float)
        return np.asarray((frame[dataset.target].to_numpy(dtype=float) - values.mean()) / (values.std() or 1.0))
    counts = dataset.train[dataset.target].value_counts()
    usable = sorted(str(name) for name, count in counts.items() if count >= 10) or [str(counts.index[0])]
    chosen = usable[int(rng.integers(len(usable)))]
    return (frame[dataset.target] == chosen).to_numpy(dtype=float)
