"""Columns of other types: sizes in German, zip codes, bit masks, versions, addresses, merchants, 'unknown'."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from known_tables import Known, Rng
from known_tables.encoding import document

from blind_tables import at_random, houses, patients, with_columns

__all__ = ["KINDS", "document"]
SUFFIXES = ("Ltd", "GmbH", "Inc", "SA", "Co", "Oy", "AB", "BV", "NV", "SpA")


def _prices(rng: Rng, size: int, it: Any, effect: Any, right: Any, wrong: Any) -> Known:
    rows, price = houses(rng, size)
    rows["y"] = (price + np.asarray(effect)).round(2)
    return Known(with_columns(rows, it=it), at_random(rng, size), right, wrong, "rmse")


def german_sizes(rng: Rng) -> Known:
    """Five sizes as German words."""
    words = ["winzig", "klein", "mittel", "groß", "riesig"]
    k = rng.choice(5, 900, p=[0.1, 0.25, 0.3, 0.25, 0.1])
    it = np.array(words)[k]
    return _prices(rng, 900, it, 70.0 * k, ("ordinal", words), ("text", "TfidfVectorizer"))


def zip_codes(rng: Rng) -> Known:
    """Places of five digits, each with its own level."""
    codes = np.unique(rng.integers(10000, 99999, 70))
    k, level = rng.integers(0, len(codes), 1600), rng.normal(0, 130, len(codes))
    return _prices(rng, 1600, codes[k], level[k], ("nominal", "TargetEncoder"), ("numeric", "none"))


def bit_masks(rng: Rng) -> Known:
    """Five options of a car as bits of one number, the low ones as important as the high ones."""
    it, worth = rng.integers(0, 32, 1500), np.array([150.0, -90.0, 120.0, -140.0, 60.0])
    effect = ((it[:, None] >> np.arange(5)) & 1) @ worth
    return _prices(rng, 1500, it, effect, ("nominal", "OneHotEncoder"), ("numeric", "none"))


def versions(rng: Rng) -> Known:
    """Versions of firmware, of which later ones are better; 1.10 follows 1.9."""
    names = [f"1.{minor}.{patch}" for minor in range(1, 13) for patch in (0, 2)]
    k = rng.integers(0, len(names), 1200)
    return _prices(rng, 1200, np.array(names)[k], 14.0 * k, ("ordinal", names), ("identifier", "drop"))


def addresses(rng: Rng) -> Known:
    """Network addresses, (nearly) each once, that tell nothing."""
    it = [".".join(str(part) for part in rng.integers(1, 255, 4)) for _ in range(800)]
    rows, _ = patients(rng, 800)
    right, wrong = ("identifier", "drop"), ("nominal", "OrdinalEncoder")
    return Known(with_columns(rows, it=it), at_random(rng, 800), right, wrong)


def merchants(rng: Rng) -> Known:
    """Two hundred merchants, some with most of the rows."""
    parts = ("Al", "Bo", "Ca", "Du", "El"), ("ma", "ri", "no", "ta"), SUFFIXES
    names = np.array([f"{a}{b} {c}" for a, b, c in itertools.product(*parts)])
    k = np.minimum(rng.geometric(0.02, 1800) - 1, 199)
    level = rng.normal(0, 120, 200)
    it = rng.permutation(names)[k]
    return _prices(rng, 1800, it, level[k], ("nominal", "TargetEncoder"), ("identifier", "drop"))


def with_unknown(rng: Rng) -> Known:
    """Numbers, of which a tenth is written as unknown."""
    value = rng.normal(40, 12, 900)
    it = pd.Series(value.round(1).astype(str)).where(rng.random(900) > 0.1, "unknown")
    right, wrong = ("numeric", "none"), ("nominal", "OrdinalEncoder")
    return _prices(rng, 900, it, 6 * (value - 40), right, wrong)


KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (german_sizes, zip_codes, bit_masks, versions, addresses, merchants, with_unknown)
}
