"""Columns of known type. Claims are the type and the encoding of column `it`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from mleredux_techniques.kit import Dataset

from known_tables import ROWS, Array, Known, Rng, base, random_test

NUMBERS = {"numeric": "none", "binary": "none", "datetime": "DatetimeEncoder", "text": "TfidfVectorizer"}
OTHERS = {"ordinal": "OrdinalEncoder", "cyclic": "OneHotEncoder", "identifier": "drop", "constant": "drop"}


def document(claims: Any, truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    features = []
    for name, fact in truth["features"].items():
        said, chosen = claims if isinstance(claims, tuple) else (claims, None)
        kind = said if name == "it" else fact["types"][0]
        if name != "it" and "numeric" in fact["types"]:
            continue
        many = "TargetEncoder" if fact["cardinality"] > 15 else "OneHotEncoder"
        encoding: Any = {"name": (chosen if name == "it" else None) or {**NUMBERS, **OTHERS}.get(kind, many)}
        if isinstance(encoding["name"], list):  # the categories in their order
            encoding = {"name": "OrdinalEncoder", "categories": encoding["name"]}
        features.append({"column": name, "type": kind, "cardinality": fact["cardinality"], "encoding": encoding})
    return {"features": features}


def _known(rng: Rng, values: Any, right: Any, wrong: Any, effect: Any = None) -> Known:
    """A table with a column of these values; `effect` is its contribution to the target."""
    rows, test = base(rng), random_test(rng)
    rows["city"] = rng.choice(["Ghent", "Lille", "Namur"], ROWS)
    if effect is not None:
        level = effect + 0.5 * rows["f0"] + rng.normal(0, 0.6, ROWS)
        rows["y"] = (level > np.median(level)).astype(int)
    rows.insert(2, "it", values)
    return Known(rows, test, right, wrong)


def _names(rng: Rng, count: int) -> tuple[Array, Array]:
    codes = rng.integers(0, count, ROWS)
    return codes, rng.normal(0, 1.3, count)[codes]


def region_codes(rng: Rng) -> Known:
    codes = rng.integers(1, 13, ROWS)
    return _known(rng, codes, "nominal", "numeric", np.where(codes % 2 == 0, 1.2, -1.2))


def post_codes(rng: Rng) -> Known:
    codes, effect = _names(rng, 180)
    return _known(rng, np.sort(rng.permutation(90_000)[:180] + 10_000)[codes], "nominal", "numeric", 1.5 * effect)


def rooms(rng: Rng) -> Known:
    rooms = rng.poisson(4, ROWS) + 1
    return _known(rng, rooms, "numeric", "nominal", 0.6 * (rooms - 5))


def sizes(rng: Rng) -> Known:
    names = np.array(["XS", "S", "M", "L", "XL"], dtype=object)
    codes = rng.integers(0, 5, ROWS)
    # whether words have an order is knowledge; an encoder that puts them in another one is wrong
    return _known(rng, names[codes], ("ordinal", list(names)), ("ordinal", "OrdinalEncoder"), 0.6 * codes)


def grades(rng: Rng) -> Known:
    codes = rng.integers(1, 8, ROWS)
    return _known(rng, [f"Grade {code}" for code in codes], "ordinal", "nominal", 0.5 * codes)


def ages(rng: Rng) -> Known:
    names = np.array(["0-9", "10-19", "20-29", "30-39", "40-49", "50+"], dtype=object)
    codes = rng.integers(0, 6, ROWS)
    return _known(rng, names[codes], "ordinal", "nominal", 0.5 * codes)


def amounts(rng: Rng) -> Known:
    values = rng.lognormal(7, 1, ROWS)
    return _known(rng, [f"${value:,.2f}" for value in values], "numeric", "nominal", np.log(values) - 7)


def percents(rng: Rng) -> Known:
    values = rng.random(ROWS) * 100
    return _known(rng, [f"{value:.1f} %" for value in values], "numeric", "text", values / 40)


def days_of_week(rng: Rng) -> Known:
    names = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], dtype=object)
    codes = rng.integers(0, 7, ROWS)
    return _known(rng, names[codes], "cyclic", "identifier", np.sin(2 * np.pi * codes / 7))


def hours(rng: Rng) -> Known:
    codes = rng.integers(0, 24, ROWS)
    return _known(rng, codes, "cyclic", "identifier", 1.5 * np.sin(2 * np.pi * codes / 24))


def row_numbers(rng: Rng) -> Known:
    return _known(rng, rng.permutation(ROWS) + 50_000, "identifier", "numeric")


def hashes(rng: Rng) -> Known:
    return _known(rng, [f"x{code:07x}" for code in rng.integers(0, 2**27, ROWS)], "identifier", "nominal")


def yes_no(rng: Rng) -> Known:
    codes = rng.integers(0, 2, ROWS)
    return _known(rng, np.array(["Y", "N"], dtype=object)[codes], "binary", "nominal", 1.0 * codes)


def merchants(rng: Rng) -> Known:
    codes, effect = _names(rng, 300)
    return _known(rng, [f"m{code:03d}" for code in rng.permutation(300)[codes]], "nominal", "ordinal", 1.5 * effect)


def month_names(rng: Rng) -> Known:
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, ROWS), unit="D")
    return _known(rng, days.strftime("%d %b %Y"), "datetime", "nominal")


def comments(rng: Rng) -> Known:
    words = np.array(["good", "bad", "fast", "slow", "late", "again", "never", "box", "blue", "fine", "order"])
    return _known(rng, [" ".join(rng.choice(words, 8)) for _ in range(ROWS)], "text", "nominal")


def cities(rng: Rng) -> Known:
    codes, effect = _names(rng, 6)
    names = np.array(["Oslo", "Bergen", "Tromso", "Bodo", "Molde", "Hamar"], dtype=object)
    return _known(rng, names[codes], "nominal", "ordinal", effect)


def _of_businesses(rng: Rng, form: str) -> Known:
    """Codes of businesses that are inspected several times; `form` formats a code."""
    codes, effect = _names(rng, 300)
    numbers = rng.permutation(9_000_000)[:300] + 1_000_000
    known = _known(rng, [form.format(number) for number in numbers[codes]], "identifier", "cyclic", effect)
    rows = known.rows.assign(it=known.rows["it"].astype(int) if form == "{}" else known.rows["it"])
    return replace(known, rows=rows.assign(business=[f"shop {code}" for code in codes]))


def license_numbers(rng: Rng) -> Known:
    return _of_businesses(rng, "{}")


def routes(rng: Rng) -> Known:
    """Numbers of air routes, with three rows each: names are far better than ranges."""
    codes = rng.permutation(np.repeat(np.arange(ROWS // 3), 3))
    return _known(rng, codes + 1, "nominal", "cyclic", 3 * rng.normal(size=ROWS // 3)[codes])


def license_codes(rng: Rng) -> Known:
    return _of_businesses(rng, "Lic. {}")


def beside_flags(rng: Rng) -> Known:
    """Two values, or one, are counted, not judged."""
    codes, _effect = _names(rng, 6)
    known = _known(
        rng, np.array(["Oslo", "Bergen", "Tromso", "Bodo", "Molde", "Hamar"], object)[codes], "nominal", "text"
    )
    flags = {name: rng.choice(["yes", "no"], ROWS) for name in ("insured", "married", "owner")}
    return replace(known, rows=known.rows.drop(columns="city").assign(region="east", **flags))


KINDS = {
    kind.__name__: kind
    for kind in (
        *(region_codes, post_codes, rooms, sizes, grades, ages, amounts, percents, days_of_week, hours, row_numbers),
        *(hashes, yes_no, merchants, month_names, comments, cities),
        *(license_numbers, license_codes, routes, beside_flags),
    )
}
