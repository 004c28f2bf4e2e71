"""Helpers for planting: neutral names, columns to change, and new predictive columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.columns import is_free_text
from mleredux_techniques._kit.data.dataset import Array, Dataset, Frame, Kind, refusal

WORDS = ("batch", "series", "unit", "lot", "case", "panel", "station", "cohort", "channel", "rack", "line", "source")
TEST_SHARE = 0.3
LEVEL = "level of the target"
"""A column that planted columns are derived from; it is not a feature and is never written."""
COMMON_NOISE = 0.6


def fresh_names(dataset: Dataset, rng: np.random.Generator, count: int) -> list[str]:
    """Return neutral names that are not in use."""
    taken = {name.lower() for name in dataset.train.columns}
    words = [str(word) for word in rng.permutation(WORDS)]
    names = [*words, *(f"{word}_{number}" for number in range(2, 6) for word in words)]
    return [name for name in names if name not in taken][:count]


def lively(dataset: Dataset, *, distinct: int = 8, most: float = 0.7) -> list[str]:
    """Return numeric features with enough distinct values, none of which is too frequent."""
    names = []
    for name in dataset.of_kind("number"):
        values = dataset.train[name].dropna()
        if len(values) < 0.9 * len(dataset.train) or values.nunique() < distinct:
            continue
        if values.value_counts(normalize=True).iloc[0] <= most:
            names.append(name)
    return names


def of_the_base(dataset: Dataset) -> list[str]:
    """Return the lively features in which nothing was planted: those of the competition."""
    planted = {name for names in dataset.planted.get("about", {}).values() for name in names}
    return [name for name in lively(dataset) if name not in planted]


def plain(dataset: Dataset, features: list[str], rng: np.random.Generator, test_share: float) -> Dataset:
    """Return the rows of both tables with some of their features, resplit at random, without groups or time."""
    columns = [*dataset.ids, *features, *dataset.targets]
    frame = dataset.rows[columns].iloc[rng.permutation(len(dataset.train) + len(dataset.test))]
    cut = round((1 - test_share) * len(frame))
    kinds = {name: dataset.kinds[name] for name in (*dataset.ids, *features)}
    joined = replace(dataset, train=frame.iloc[:cut], test=frame.iloc[cut:], features=tuple(features), kinds=kinds)
    return renumbered(resized(replace(joined, group=None, time=None, planted={})), rng)


def clean(
    dataset: Dataset,
    technique: str,
    rng: np.random.Generator,
    *,
    numbers: int = 8,
    noise: float = 1.0,
    test_share: float = TEST_SHARE,
    texts: bool = False,
) -> Dataset:
    """Return a separate table: some numbers of the competition and two predictive ones, split at random.

    Args:
        texts: Whether to keep prose too; then numbers are not required.

    Raises:
        NotApplicable: The competition has fewer than two lively numbers.
    """
    kept = of_the_base(dataset)
    prose = [name for name in dataset.of_kind("text") if is_free_text(dataset.train[name])] if texts else []
    if not prose:
        need(dataset, technique, kept, 2, "numeric features")
    chosen = rng.permutation(kept)[: max(numbers, len(dataset.thumbnail))]
    cleaned = plain(dataset, [*(str(name) for name in chosen), *prose], rng, test_share)
    for name in ("size", "rate"):
        level = levels(cleaned, rng, noise=noise)
        cleaned = with_values(cleaned, {name: np.round(level * 10.0 ** float(rng.uniform(-2, 3)), 4)}, rng)
    return cleaned


def need(dataset: Dataset, technique: str, columns: list[str], count: int, what: str) -> None:
    """Check that there are enough columns.

    Raises:
        NotApplicable: There are too few columns.
    """
    if len(columns) < count:
        raise refusal(dataset, f"{technique}+planted", f"it needs {count} {what}, but has {len(columns)}")


def standardised(values: Array) -> Array:
    """Standardize to mean 0 and standard deviation 1; missing values become 0."""
    spread = float(np.nanstd(values)) or 1.0
    return np.asarray(np.nan_to_num((values - np.nanmean(values)) / spread))


def with_columns(dataset: Dataset, columns: dict[str, tuple[Any, Any, Kind]], rng: np.random.Generator) -> Dataset:
    """Add features (training values, test values, kind) at random positions."""
    train, test = dataset.train.copy(), dataset.test.copy()
    features = list(dataset.features)
    for name, (ours, theirs, _kind) in columns.items():
        train[name], test[name] = ours, theirs
        features.insert(int(rng.integers(len(features) + 1)), name)
    kinds = {**dataset.kinds, **{name: kind for name, (_ours, _theirs, kind) in columns.items()}}
    hidden = [LEVEL] if LEVEL in train else []
    order = [*dataset.ids, *features, *dataset.targets, *hidden]
    return replace(dataset, train=train[order], test=test[order], features=tuple(features), kinds=kinds)


def with_values(dataset: Dataset, columns: dict[str, Array], rng: np.random.Generator) -> Dataset:
    """Add features, numbers or texts, at random positions: name → a value for each row of both tables."""
    cut = len(dataset.train)
    kinds: dict[bool, Kind] = {True: "text", False: "number"}
    parts = {name: (held[:cut], held[cut:], kinds[held.dtype == object]) for name, held in columns.items()}
    return with_columns(dataset, parts, rng)


def renumbered(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Assign new ids in random order, so that they do not reveal the changes; the id columns keep their names."""
    if not dataset.ids:
        return dataset
    numbers = rng.permutation(len(dataset.train) + len(dataset.test))
    for name in dataset.ids:
        values = numbers if dataset.kinds[name] == "number" else np.array([f"r{n:07d}" for n in numbers], dtype=object)
        dataset = assigned(dataset, name, values)
    return dataset


def resized(dataset: Dataset) -> Dataset:
    """Update the row counts and reset the index."""
    train, test = dataset.train.reset_index(drop=True), dataset.test.reset_index(drop=True)
    return replace(dataset, train=train, test=test, train_rows=len(train), test_rows=len(test))


def merged(dataset: Dataset, kinds: list[str], **facts: Any) -> Dataset:
    """Add to the record of planted facts."""
    known = {*dataset.planted.get("kinds", ()), *kinds}
    return replace(dataset, planted={**dataset.planted, **facts, "kinds": sorted(known)})


def levels(dataset: Dataset, rng: np.random.Generator, noise: float) -> Array:
    """Return a number for each row of both tables, training rows first, with mean 0 and standard deviation 1: they are
    equally predictive of the target in both tables.

    All columns of an instance share a part of their noise (`LEVEL`), so that even many of them together do not reveal
    the target.

    Args:
        noise: Standard deviation of the independent noise, relative to that of the target's contribution.
    """
    whole = dataset.rows
    level = whole[LEVEL].to_numpy() if LEVEL in whole else noisy_target(dataset, whole, rng)
    return standardised(level + noise * rng.standard_normal(len(whole)))


def with_level(dataset: Dataset, rng: np.random.Generator, noise: float = 0.0) -> Dataset:
    """Return a dataset with `LEVEL`, from which all further columns are derived, and with more shared noise."""
    whole = dataset.rows
    level = noisy_target(dataset, whole, rng)
    if noise:
        level = standardised(level + noise * rng.standard_normal(len(whole)))
    return assigned(dataset, LEVEL, level)


def noisy_target(dataset: Dataset, frame: Frame, rng: np.random.Generator) -> Array:
    """Return the common part of levels: the target, or its classes in random order, with noise."""
    if dataset.problem == "regression":
        signal = standardised(frame[dataset.target].to_numpy(dtype=float)) * float(rng.choice([-1, 1]))
    else:
        names, codes = np.unique(frame[dataset.target].to_numpy(dtype=str), return_inverse=True)
        signal = standardised(rng.permutation(len(names)).astype(float))[codes]
    return standardised(signal + COMMON_NOISE * rng.standard_normal(len(frame)))


def target_signal(dataset: Dataset, frame: Frame, rng: np.random.Generator) -> Array:
    """Return the target as standardized numbers: unchanged, or one class against the rest."""
    if dataset.problem == "regression":
        values = dataset.train[dataset.target].to_numpy(dtype=float)
        return np.asarray((frame[dataset.target].to_numpy(dtype=float) - values.mean()) / (values.std() or 1.0))
    counts = dataset.train[dataset.target].value_counts()
    usable = sorted(str(name) for name, count in counts.items() if count >= 10) or [str(counts.index[0])]
    chosen = usable[int(rng.integers(len(usable)))]
    return (frame[dataset.target] == chosen).to_numpy(dtype=float)


def whole(dataset: Dataset, levels: int) -> Dataset:
    """Replace the target with integers in the same order, with about as many values as the levels."""
    values = dataset.rows[dataset.target].to_numpy(dtype=float)
    target = np.round(levels * (values - values.min()) / (np.ptp(values) or 1.0))
    return assigned(dataset, dataset.target, target)


def skewed(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Replace the target with one in the same order but with a long tail."""
    from scipy.special import ndtri

    values = dataset.rows[dataset.target].to_numpy(dtype=float)
    values = values + 1e-6 * rng.standard_normal(len(values)) * values.std()
    place = (np.argsort(np.argsort(values)) + 0.5) / len(values)
    target = np.round(float(10 ** rng.uniform(1, 3)) * np.exp(float(rng.uniform(0.5, 0.8)) * ndtri(place)), 3)
    return assigned(dataset, dataset.target, target)


def assigned(dataset: Dataset, name: str, values: Array) -> Dataset:
    """Replace a column, or add one that is not a feature: a value for each row of both tables."""
    ours, theirs = np.split(values, [len(dataset.train)])
    return replace(dataset, train=dataset.train.assign(**{name: ours}), test=dataset.test.assign(**{name: theirs}))
