"""Target values that occur in a public table without an id next to them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from mleredux_audit_leaks.report import AuditFinding, Statistic
from mleredux_audit_leaks.statistics import Floats, as_numbers
from mleredux_audit_leaks.tables import Table
from mleredux_audit_leaks.truth import Target, Truth

LEAST, HIGH = 0.02, 0.2
"""Minimum shares of answers whose values are present, by severity."""
FEWEST = 8
FINE = 1e-5
"""Maximum difference between equal values, in standard deviations of the target."""
DIGITS = 6
MOST_COLUMNS = 40


def check_values(truth: Truth, tables: list[Table], seed: int) -> Iterator[AuditFinding]:
    """Check for public columns that contain the exact values of one or two targets, in any order."""
    targets = [target for target in truth.targets if target.labels.kind == "number"][:2]
    targets = [candidate for candidate in targets if _are_fine(candidate)]
    if not targets or len(truth) < FEWEST:
        return
    wanted = np.stack([target.labels.values for target in targets], axis=1)
    fine = np.maximum(wanted.std(axis=0) * FINE, 1e-12)
    # Matches of slightly different values show how often values match by chance.
    off = wanted + fine * np.random.default_rng(seed).uniform(20, 200, wanted.shape)
    matches: dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_], list[str]]] = {}
    for table in tables:
        if truth.is_sample(table.name):
            continue
        for columns, numbers in _combinations(table, wanted):
            hit = _contained(wanted, numbers, fine)
            if not hit.any():
                continue
            key = f"{PurePosixPath(table.name).name}: {', '.join(columns)}"
            none = np.zeros(len(wanted), dtype=bool)
            hits, chances, places = matches.get(key, (none, none, []))
            matches[key] = hits | hit, chances | _contained(off, numbers, fine), [*places, table.name]
    for key, (hits, chances, places) in matches.items():
        share, chance = float(hits.mean()), float(chances.mean())
        if hits.sum() < FEWEST or share < LEAST or chance > 0.1 * share:
            continue
        names = " and ".join(repr(target.name) for target in targets)
        yield AuditFinding(
            kind="answers",
            severity="high" if share >= HIGH else "medium",
            message=f"Public tables ({key}) contain the test rows' values of {names}.",
            statistic=Statistic(name="share of values found", value=share, baseline=chance, threshold=LEAST),
            figures={"answers compared": len(wanted), "tables": len(places)},
            examples=tuple(places[:3]),
        )


def _are_fine(target: Target) -> bool:
    """Return whether values have so many digits that they match others only if copied."""
    digits = target.values.head(2000).str.partition("e")[0].str.replace(r"\D", "", regex=True).str.strip("0").str.len()
    return float((digits >= DIGITS).mean()) >= 0.5


def _combinations(table: Table, wanted: Floats) -> Iterator[tuple[tuple[str, ...], Floats]]:
    """Yield combinations of one column per target, among columns with about its range, of shape (rows, targets)."""
    low, high = wanted.min(axis=0), wanted.max(axis=0)
    chosen: list[list[tuple[str, Floats]]] = [[] for _ in low]
    for name in list(table.frame)[:MOST_COLUMNS]:
        numbers = as_numbers(table.frame[name])
        if numbers is None:
            continue
        for place in range(len(low)):
            inside = (numbers >= low[place]) & (numbers <= high[place])
            if inside.any() and len(np.unique(numbers[inside])) > 1:
                chosen[place].append((str(name), numbers))
    for columns in list(product(*(columns_of[:6] for columns_of in chosen)))[:12]:
        names = tuple(name for name, _ in columns)
        if len(set(names)) == len(names):
            yield names, np.stack([numbers for _, numbers in columns], axis=1)


def _contained(wanted: Floats, numbers: Floats, fine: Floats) -> NDArray[np.bool_]:
    """Return which rows of `wanted` equal rows of `numbers`, within a tolerance of `fine`."""
    low, high = wanted.min(axis=0) - fine, wanted.max(axis=0) + fine
    numbers = numbers[((numbers >= low) & (numbers <= high)).all(axis=1)]
    hit = np.zeros(len(wanted), dtype=bool)
    if not len(numbers):
        return hit
    order = np.argsort(numbers[:, 0], kind="stable")
    numbers = numbers[order]
    begin = np.searchsorted(numbers[:, 0], wanted[:, 0] - fine[0], side="left")
    end = np.searchsorted(numbers[:, 0], wanted[:, 0] + fine[0], side="right")
    for row in np.flatnonzero(end > begin):
        near = numbers[begin[row] : end[row]]
        hit[row] = bool((np.abs(near - wanted[row]) <= fine).all(axis=1).any())
    return hit
