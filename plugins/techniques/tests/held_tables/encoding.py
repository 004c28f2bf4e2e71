"""Columns of other types. Claims are the type of column `it`, or that and its encoding
(or the order of its categories)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from known_tables import Known, Rng

from held_tables import held_out, mixed, put


def _it(
    rng: Rng, size: int, values: Any, right: Any, wrong: Any, effect: Any = None, *, problem: str = "binary"
) -> Known:
    """A table with this column; `effect` is what it adds to the target."""
    rows = mixed(rng, size, problem)
    if effect is not None:
        level = 1.2 * np.asarray(effect) + 0.4 * rows["slope"] + rng.normal(0, 0.6, size)
        rows["y"] = level.round(3) if problem == "regression" else (level > np.median(level)).astype(int)
    metric = "rmse" if problem == "regression" else "roc-auc"
    return Known(put(rows, it=values), held_out(rng, size), right, wrong, metric)


def school_marks(rng: Rng) -> Known:
    """Letters with signs, of which the target rises."""
    names = np.array(["A+", "A", "A-", "B+", "B", "B-", "C+", "C", "C-", "D"], dtype=object)
    codes = rng.integers(0, 10, 900)
    return _it(rng, 900, names[codes], ("ordinal", list(names)), "nominal", -0.3 * codes)


def ratings_of_bonds(rng: Rng) -> Known:
    names = np.array(["AAA", "AA", "A", "BBB", "BB", "B", "CCC"], dtype=object)
    codes = rng.integers(0, 7, 900)
    return _it(rng, 900, names[codes], ("ordinal", list(names)), "nominal", -0.4 * codes)


def stages(rng: Rng) -> Known:
    names = np.array(["Stage I", "Stage II", "Stage III", "Stage IV"], dtype=object)
    codes = rng.integers(0, 4, 700)
    return _it(rng, 700, names[codes], ("ordinal", list(names)), "nominal", 0.5 * codes)


def lengths_of_service(rng: Rng) -> Known:
    names = np.array(["< 1 year", "1-2 years", "3-5 years", "6-10 years", "more than 10 years"], dtype=object)
    codes = rng.integers(0, 5, 800)
    return _it(rng, 800, names[codes], ("ordinal", list(names)), "nominal", 0.5 * codes)


def plant_codes(rng: Rng) -> Known:
    """Numbers that are names, of which each has its own level."""
    codes = rng.integers(0, 30, 1400)
    numbers = rng.permutation(np.arange(100, 999))[:30]
    return _it(rng, 1400, numbers[codes], ("nominal", "TargetEncoder"), "numeric", rng.normal(0, 1.2, 30)[codes])


def clerks(rng: Rng) -> Known:
    """A hundred and fifty texts, of which each has its own level."""
    codes = rng.integers(0, 150, 1500)
    names = [f"{a}{b}" for a, b in zip(rng.choice(list("QWERTZ"), 150), rng.permutation(900)[:150], strict=True)]
    right, wrong = ("nominal", "TargetEncoder"), ("nominal", "OrdinalEncoder")
    return _it(
        rng,
        1500,
        np.array(names, dtype=object)[codes],
        right,
        wrong,
        rng.normal(0, 1.2, 150)[codes],
        problem="regression",
    )


def comma_decimals(rng: Rng) -> Known:
    values = rng.normal(30, 9, 800)
    return _it(rng, 800, [f"{value:.2f}".replace(".", ",") for value in values], "numeric", "nominal", values / 9 - 3)


def sums_of_money(rng: Rng) -> Known:
    values = rng.lognormal(6, 1, 800)
    return _it(rng, 800, [f"EUR {value:,.0f}" for value in values], "numeric", "text", np.log(values) - 6)


def moments_of_day(rng: Rng) -> Known:
    minutes = rng.integers(0, 1440, 1000)
    values = [f"{minute // 60:02d}:{minute % 60:02d}" for minute in minutes]
    return _it(rng, 1000, values, "datetime", "nominal", 1.5 * np.sin(2 * np.pi * minutes / 1440))


def angles(rng: Rng) -> Known:
    """Directions of the wind in steps of ten degrees."""
    codes = rng.integers(0, 36, 1200)
    return _it(rng, 1200, codes * 10, "cyclic", "nominal", 1.5 * np.cos(2 * np.pi * codes / 36))


def months(rng: Rng) -> Known:
    names = np.array(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], dtype=object)
    codes = rng.integers(0, 12, 900)
    return _it(rng, 900, names[codes], "cyclic", "text", 1.5 * np.sin(2 * np.pi * codes / 12))


def addresses(rng: Rng) -> Known:
    values = [f"{rng.choice(['ann', 'bo', 'cy'])}{k}@mail{k % 7}.example" for k in rng.permutation(9000)[:800]]
    return _it(rng, 800, values, "identifier", "nominal")


def titles(rng: Rng) -> Known:
    """Four to seven words, of which some tell the target."""
    size = 900
    words = np.array(["red", "lamp", "desk", "old", "chair", "new", "oak", "table", "small", "box", "large", "wide"])
    rows = [list(rng.choice(words, rng.integers(5, 8))) for _ in range(size)]
    effect = [2.0 * ("oak" in row) - 2.0 * ("old" in row) for row in rows]
    return _it(rng, size, [" ".join(row) for row in rows], "text", "nominal", effect)


def leading_zeros(rng: Rng) -> Known:
    """Postal codes as texts."""
    codes = rng.integers(0, 60, 1200)
    names = np.array([f"0{k:04d}" for k in rng.permutation(9999)[:60]], dtype=object)
    return _it(rng, 1200, names[codes], "nominal", ("numeric", "none"), rng.normal(0, 1.2, 60)[codes])


def half_missing_flag(rng: Rng) -> Known:
    codes = rng.integers(0, 2, 700)
    values = pd.Series(np.array(["t", "f"], dtype=object)[codes]).where(rng.random(700) < 0.6)
    return _it(rng, 700, values, ("binary", "OneHotEncoder"), "text", 1.5 * codes)


def counts(rng: Rng) -> Known:
    """Few whole numbers that are quantities."""
    values = rng.poisson(2, 900)
    return _it(rng, 900, values, "numeric", "identifier", 0.6 * values)


def stamps(rng: Rng) -> Known:
    days = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1000 * 86_400, 900), unit="s")
    return _it(rng, 900, days.strftime("%Y-%m-%dT%H:%M:%SZ"), "datetime", "identifier")


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(school_marks, ratings_of_bonds, stages, lengths_of_service, plant_codes, clerks, comma_decimals),
        *(sums_of_money, moments_of_day, angles, months, addresses, titles, leading_zeros, half_missing_flag),
        *(counts, stamps),
    )
}
