"""Outlines in public files (JSON) of objects that lie inside the held-out masks (run-length encoded)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from mleredux_audit_leaks.inventory import PublicFile
from mleredux_audit_leaks.report import AuditFinding, Statistic
from mleredux_audit_leaks.statistics import Floats, Ints
from mleredux_audit_leaks.tables import Table
from mleredux_audit_leaks.truth import Truth, normal_ids

LARGEST = 64 << 20
FILES = 200
LEAST = 0.5
CHANCE = -6.0
"""Decimal logarithm of the probability that this many points are inside a mask by chance."""


def check_outlines(
    truth: Truth, files: list[PublicFile], tables: list[Table], notes: list[str]
) -> Iterator[AuditFinding]:
    """Compare the centers of outlines in JSON files that are named by an id with the mask of that id."""
    name = next((name for name in truth.target_columns if _is_mask(truth.frame[name])), None)
    if name is None or len(truth.id_columns) != 1:
        return
    inside = outlines = 0
    chance = 0.0
    examples: list[str] = []
    named = [file for file in files if file.parts[-1].lower().endswith((".json", ".geojson"))]
    stems = normal_ids(pd.Series([file.parts[-1] for file in named], dtype=object))
    chosen = [
        (file, truth.first_rows[stem]) for file, stem in zip(named, stems, strict=True) if stem in truth.first_rows
    ]
    if len(chosen) > FILES:
        notes.append(f"Outlines of {FILES} of {len(chosen)} files were compared with masks.")
    for file, row in chosen[:FILES]:
        middles = _middles(file)
        spans = _spans(str(truth.frame[name].iloc[row]))
        heights = _sides(truth, tables, int(row))
        if not len(middles) or not len(spans) or not heights:
            continue
        tried = [
            (_inside(spans, across * side + down), spans[:, 1].sum() / area)
            for (side, area), (across, down) in product(heights, (middles.T, middles.T[::-1]))
        ]
        hit, covered = max(tried, key=lambda counts: (int(counts[0].sum()), -counts[1]))
        inside, outlines = inside + int(hit.sum()), outlines + len(hit)
        # The best of several interpretations is taken, so any of them may have matched by chance.
        chance += math.log10(len(tried)) + _log10_tail(len(hit), int(hit.sum()), min(float(covered), 1.0))
        examples.append(file.name)
    share = inside / max(outlines, 1)
    if share >= LEAST and chance <= CHANCE:
        yield AuditFinding(
            kind="answers",
            severity="high",
            message=f"Outlines in public files whose names are test ids match the masks of {name!r}.",
            statistic=Statistic(name="share of outlines inside the mask", value=share, threshold=LEAST),
            figures={"outlines": outlines, "decimal logarithm of the probability by chance": round(chance, 1)},
            examples=tuple(examples[:3]),
        )


def _is_mask(column: pd.Series) -> bool:
    """Return whether most nonblank cells of a column contain pairs of start and length."""
    filled = column.astype(str).str.strip()
    filled = filled[filled.ne("") & filled.ne("nan")].head(200)
    return len(filled) > 0 and bool(filled.str.fullmatch(r"\d+ \d+(?: \d+ \d+)*").mean() > 0.8)


def _spans(text: str) -> Ints:
    """Return starts (from 0) and lengths, of shape (runs, 2), in ascending order."""
    numbers = np.array([int(part) for part in re.findall(r"\d+", text)], dtype=np.int64)
    spans = numbers[: len(numbers) // 2 * 2].reshape(-1, 2)
    return np.asarray(spans[np.argsort(spans[:, 0])] - [1, 0])


def _inside(spans: Ints, places: Floats) -> np.ndarray:
    at = places.astype(np.int64)
    run = np.searchsorted(spans[:, 0], at, side="right") - 1
    return np.asarray((run >= 0) & (at < spans[run, 0] + spans[run, 1]))


def _middles(file: PublicFile) -> Floats:
    """Return the center of each outline (a list of pairs of numbers) in a JSON document, of shape (outlines, 2)."""
    if file.size > LARGEST:
        return np.zeros((0, 2))
    try:
        content = json.loads(file.read(LARGEST))
    except (ValueError, RecursionError):
        return np.zeros((0, 2))
    middles: list[Floats] = []
    waiting: list[Any] = [content]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list) and item:
            if all(_is_point(point) for point in item):
                middles.append(np.array(item, dtype=float).mean(axis=0))
            else:
                waiting += item
    return np.floor(np.array(middles)) if middles else np.zeros((0, 2))


def _is_point(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(type(number) in (int, float) for number in item)


def _sides(truth: Truth, tables: list[Table], row: int) -> list[tuple[int, int]]:
    """Return candidates for the side along which masks are counted, each with the image's area, from any table with its
    height and width."""
    frames = [(truth.frame, np.array([row]))]
    for table in tables:
        rows = truth.rows_of(table.frame)
        if rows is not None:
            frames.append((table.frame, np.flatnonzero(rows == row)))
    for frame, at in frames:
        sides = {}
        for side in ("height", "width"):
            column = next((name for name in frame if side in str(name).lower()), None)
            if column is not None and len(at):
                sides[side] = int(pd.to_numeric(frame[column].iloc[at[0]], errors="coerce") or 0)
        if len(sides) == 2 and min(sides.values()) > 0:
            return [(side, sides["height"] * sides["width"]) for side in dict.fromkeys(sides.values())]
    return []


def _log10_tail(tries: int, hits: int, share: float) -> float:
    """Return an upper bound on the decimal logarithm of P(at least `hits` of `tries`), by Chernoff and Hoeffding
    (1963)."""
    rate = hits / tries
    if rate <= share:
        return 0.0
    if share <= 0:
        return -math.inf
    divergence = rate * math.log(rate / share)
    if rate < 1:
        divergence += (1 - rate) * math.log((1 - rate) / (1 - share))
    return -tries * divergence / math.log(10)
