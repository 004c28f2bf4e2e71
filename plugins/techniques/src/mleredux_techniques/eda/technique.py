"""Placeholders for missing values, numbers stored as text, non-monotone relations, and drifting columns."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from mleredux_techniques._kit.data.dataset import Array, Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.planting.instances import clean, levels, merged, with_values

MARKS = (-999.0, 9999.0, -99999.0, 999999.0)
TEXTS = ("{:.1f} kg", "${:,.2f}", "{:.1f}%", "{:.0f} m")
NOISE = 0.4


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Draw a separate table with two columns of each kind, one that is only bounded, and one in another unit; some have
    a different mean or spread in the test set.

    Raises:
        NotApplicable: The competition has fewer than two numeric features with enough values.
    """
    data = clean(dataset, "eda", rng, noise=2.0, texts=True)
    own = [name for name in data.of_kind("number") if name not in ("size", "rate")]
    plain = [str(name) for name in rng.permutation(own)]
    likened = (plain or ["size"])[0]
    cut, columns = len(data.train), dict[str, Array]()
    for place in range(2):
        scale, middle = float(10 ** rng.uniform(-1, 1.5)), float(rng.uniform(-1, 1))
        marked, bent, texts = (levels(data, rng, NOISE) for _ in range(3))
        marked = np.round(scale * (marked + middle), 3)
        inside = marked[:cut]
        mark = float(rng.choice([mark for mark in MARKS if np.abs(mark - inside).min() > 3 * np.ptp(inside)]))
        share = float(rng.uniform(0.08, 0.2))
        columns[f"marked {place}"] = np.where(rng.random(len(marked)) < share, mark, marked)
        columns[f"bent {place}"] = np.round(scale * (_turned(bent, rng) + middle), 3)
        form = str(rng.choice(TEXTS))
        columns[f"text {place}"] = np.array([form.format(10 * scale * (8 + level)) for level in texts], object)
    level = levels(data, rng, 1.5)
    columns["bounded"] = np.round(np.minimum(level, float(np.quantile(level[:cut], 0.85))), 3)
    unit, error = float(10 ** rng.uniform(-2, 2)), 0.05 * float(data.train[likened].std())
    both = data.rows[likened].to_numpy(dtype=float)
    columns["unit"] = unit * (both + error * rng.standard_normal(len(both)))
    for name in plain[1 : 2 + len(plain) // 3]:
        values, known = data.test[name].to_numpy(dtype=float), data.train[name]
        if rng.random() < 0.5:
            values = values + float(known.std() * rng.choice([-1, 1]) * rng.uniform(0.6, 1.0))
        else:
            values = known.mean() + (values - known.mean()) * float(rng.uniform(2.2, 3.0))
        data.test[name] = np.round(values, 3)
    for name in data.of_kind("text"):  # prose
        share = float(rng.choice([1.0, 0.5]))
        words = [str(text).split(" ") for text in data.test[name]]
        data.test[name] = [" ".join(text[: max(1, round(share * len(text)))]) for text in words]
    return merged(with_values(data, columns, rng), ["sentinel", "nonmonotone", "number_as_text", "alike", "drift"])


def _turned(level: Array, rng: np.random.Generator) -> Array:
    """Return normally distributed numbers whose magnitude, not sign, follows the order of the levels."""
    return np.asarray(ndtri(0.5 + 0.498 * ndtr(level)) * rng.choice([-1, 1], len(level)))


technique = declared(__package__, plant)
