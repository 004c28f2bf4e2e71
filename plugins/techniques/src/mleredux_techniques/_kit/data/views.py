"""Views of a column: the ways in which it may be predictive of the target, as codes of training and test rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Kind, Series
from mleredux_techniques._kit.data.structure import in_time, looks_like_time

MAX_BINS = 32
ROWS_A_BIN = 25
MAX_TOKENS = 30
FREQUENT = 0.01
FLAT = 0.95
_PLACES = (0, 1, 2, 3, 4, 5, -1, -2, -3)
_PERIODS = ("month", "day", "day_of_week", "hour", "minute", "second")


@dataclass(frozen=True)
class View:
    """One way to read a column.

    Attributes:
        name: Name of the view, such as `value`, `last digit`, `character 1`.
        train: A code below `count` for each training row.
        test: The same for each test row; `count` if the value is not among the training rows.
        count: Number of codes.
        flat: Whether nearly all test rows have one value, as if the column were unknown there.
    """

    name: str
    train: Array
    test: Array
    count: int
    flat: bool


def views_of(train: Series, test: Series, kind: Kind) -> Iterator[View]:
    """Return the views of a column: bins and digits of numbers; parts, lengths and words of texts; parts of dates."""
    if kind != "text":
        yield from _of_numbers("", train.to_numpy(dtype=float), test.to_numpy(dtype=float))
        return
    if looks_like_time(train):
        yield from _of_dates(train, test)
        return
    yield from _of_texts(train, test)


def in_bins(name: str, train: Array, test: Array, *, bins: int | None = None) -> View:
    """Return the view of numbers in bins with equal numbers of training rows; missing values have their own bin."""
    count = bins or int(np.clip(len(train) // ROWS_A_BIN, 4, MAX_BINS))
    known = train[~np.isnan(train)]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, count + 1)[1:-1])) if len(known) else np.zeros(0)

    def code(values: Array) -> Array:
        # a value that fills several quantiles has its own bin: [edge, edge]
        placed = np.searchsorted(edges, values, "left") + np.searchsorted(edges, values, "right")
        return np.where(np.isnan(values), 2 * len(edges) + 1, placed)

    return View(name, code(train), code(test), 2 * len(edges) + 2, _is_flat(test))


def of_values(name: str, train: Array, test: Array) -> View:
    """Return the view of equal values (texts or numbers; missing values count as equal)."""
    import pandas as pd

    codes, values = pd.factorize(train, use_na_sentinel=False)
    places = pd.Index(values).get_indexer(pd.Index(test))
    return View(name, codes, np.where(places < 0, len(values), places), len(values), _is_flat(test))


def _is_flat(values: Array) -> bool:
    import pandas as pd

    counts = np.bincount(pd.factorize(values, use_na_sentinel=False)[0])
    return bool(counts.max(initial=0) >= FLAT * len(values))


def _of_numbers(name: str, train: Array, test: Array) -> Iterator[View]:
    prefix = f"{name} " if name else ""
    yield in_bins(f"{prefix}value", train, test)
    distinct = len(np.unique(train))
    if 3 <= distinct <= len(train) // 2:
        yield of_values(f"{prefix}equal values", train, test)
    known = train[~np.isnan(train)]
    if distinct <= 20 or not len(known):
        return
    if (known % 1 == 0).all():
        yield of_values(f"{prefix}last digit", np.abs(train) % 10, np.abs(test) % 10)
    else:
        yield of_values(f"{prefix}decimals", _decimals(train), _decimals(test))
        if (np.abs(known * 100 - np.round(known * 100)) < 1e-6 * np.maximum(np.abs(known), 1)).mean() > FLAT:
            yield of_values(f"{prefix}cents", *(np.round(np.abs(values) * 100) % 100 for values in (train, test)))


def _decimals(values: Array) -> Array:
    return np.array([len(repr(value).partition(".")[2]) for value in values.tolist()], dtype=float)


def _of_dates(train: Series, test: Series) -> Iterator[View]:
    import pandas as pd

    seconds = in_time(train).to_numpy(dtype=float), in_time(test).to_numpy(dtype=float)
    yield from _of_numbers("moment", *seconds)
    ours, theirs = (pd.Series(pd.to_datetime(pd.Series(values), unit="s", errors="coerce")).dt for values in seconds)
    for part in _PERIODS:
        yield of_values(part, getattr(ours, part).to_numpy(dtype=float), getattr(theirs, part).to_numpy(dtype=float))


def _of_texts(train: Series, test: Series) -> Iterator[View]:
    """Return the views of texts, computed once per distinct text."""
    import pandas as pd

    ours, theirs = (values.fillna("").astype(str).to_numpy(dtype=object) for values in (train, test))
    codes, names = pd.factorize(np.concatenate([ours, theirs]))
    texts = [str(name) for name in names]

    def view(name: str, read: list[Any], *, binned: bool = False) -> View:
        values = np.array(read, dtype=float if binned else object)[codes]
        return (in_bins if binned else of_values)(name, values[: len(ours)], values[len(ours) :])

    if pd.unique(ours).size <= 0.9 * len(ours):
        yield of_values("equal values", ours, theirs)
    for place in _PLACES:
        yield view(
            f"character {place + 1 if place >= 0 else place}",
            [text[place] if len(text) >= (place + 1 if place >= 0 else -place) else "" for text in texts],
        )
    for size in (2, 3):
        yield view(f"first {size} characters", [text[:size] for text in texts])
    words = [_words(text) for text in texts]
    yield view("first word", [parts[0] if parts else "" for parts in words])
    yield view("last word", [parts[-1] if parts else "" for parts in words])
    yield view("length", [len(text) for text in texts], binned=True)
    yield view("words", [len(parts) for parts in words], binned=True)
    yield view("capitals", [sum(map(str.isupper, text)) for text in texts], binned=True)
    yield view("digits", [sum(map(str.isdigit, text)) for text in texts], binned=True)
    yield view("number", [_number(text) for text in texts], binned=True)
    for word in _frequent(words, codes[: len(ours)]):
        yield view(f"word {word}", [float(word in parts) for parts in words])


def _words(text: str) -> list[str]:
    return "".join(mark if mark.isalnum() else " " for mark in text.lower()).split()


def _number(text: str) -> float:
    digits = "".join(filter(str.isdecimal, text))[:15]
    return float(digits) if digits else float("nan")


def _frequent(words: list[list[str]], codes: Array) -> list[str]:
    """Return words in at least `FREQUENT` of the rows, the most frequent first, if texts have several."""
    repeated = np.bincount(codes, minlength=len(words)).tolist()
    held: Counter[str] = Counter()
    for parts, rows in zip(words, repeated, strict=True):
        for word in set(parts) if len(parts) > 1 else ():
            held[word] += rows
    least = max(5.0, FREQUENT * len(codes))
    ranked = sorted(held.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, rows in ranked if rows >= least][: MAX_TOKENS * 10]
