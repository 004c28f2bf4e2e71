"""Overlapping windows: rows cut from one series, so that training and test data share frames."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mleredux_audit_leaks.report import AuditFinding, Statistic
from mleredux_audit_leaks.statistics import Ints, skill, transfer
from mleredux_audit_leaks.tables import Table
from mleredux_audit_leaks.truth import Joined, Known, Truth

LEAST = 0.01
"""Minimum share of test rows whose window overlaps one of the training data, in excess of chance."""
FEWEST = 10
LEAST_COLUMNS = 6
MOST_WIDTHS = 24
_DISTINCT = 4
"""Minimum number of distinct values in a window; windows with fewer may recur by chance (silence, padding)."""
Numbers = NDArray[np.float64]


def check_windows(truth: Truth, joined: list[Joined], known: list[Known], seed: int) -> Iterator[AuditFinding]:
    """Check for test rows whose columns, shifted by one frame, equal those of a training row."""
    checked_pairs: set[tuple[str, str]] = set()
    for test in joined:
        if truth.is_sample(test.table.name):
            continue
        for base in known:
            where = (test.table.name, base.table.name)
            names = [name for name in base.features if name in test.table.frame and name not in truth.id_columns]
            if where in checked_pairs or test.table.name == base.table.name or len(names) < LEAST_COLUMNS:
                continue
            checked_pairs.add(where)
            for chosen in _blocks(names):
                tested, mine = _matrix(test.table, chosen), _matrix(base.table, chosen)
                if tested is None or mine is None or tested.shape[1] != mine.shape[1]:
                    continue
                if finding := _overlap(truth, test, base, tested, mine, seed):
                    yield finding
                    break


def _blocks(names: list[str]) -> list[list[str]]:
    """Return columns that may form one window: all, or those whose names differ only in digits (`lag1`, `lag2`, …)."""
    stems: dict[str, list[str]] = {}
    for name in names:
        stems.setdefault(re.sub(r"\d+", "#", str(name)), []).append(name)
    parts = [part for part in stems.values() if LEAST_COLUMNS <= len(part) < len(names)]
    return [names, *parts]


def _matrix(table: Table, names: list[str]) -> Numbers | None:
    """Return the numeric columns, of shape (rows, columns); None if there are too few."""
    if table.matrix is not None:
        return table.matrix.astype(np.float64)
    columns = []
    for name in names:
        try:
            columns.append(table.frame[name].to_numpy(dtype=object).astype(np.float64))
        except ValueError:
            continue
    return np.stack(columns, axis=1) if len(columns) >= LEAST_COLUMNS else None


def _overlap(truth: Truth, test: Joined, base: Known, theirs: Numbers, ours: Numbers, seed: int) -> AuditFinding | None:
    columns = theirs.shape[1]
    best: tuple[float, int, Ints, Ints] | None = None
    # Possible numbers of columns per frame: divisors that leave at least three frames, the largest first.
    for width in [width for width in range(columns // 3, 0, -1) if columns % width == 0][:MOST_WIDTHS]:
        hit, source = _shifted_copies(theirs, ours, width)
        share = float(hit.mean())
        if hit.sum() >= FEWEST and share >= LEAST and (best is None or share > best[0]):
            best = share, width, np.flatnonzero(hit).astype(np.int64), source
    if best is None:
        return None
    share, width, rows, source = best
    rng = np.random.default_rng(seed)
    mixed = np.stack([rng.permutation(theirs[:, place]) for place in range(columns)], axis=1)
    chance = float(_shifted_copies(mixed, ours, width)[0].mean())
    if share - chance < LEAST or chance > 0.2 * share:
        return None
    figures: dict[str, float | int | str] = {"test rows": len(rows), "columns": columns, "columns per frame": width}
    severity = "medium"
    # More rows are read from a matrix than from its table of texts; only rows in both can be compared with labels.
    labelled = (rows < len(test.rows)) & (source[rows] < len(base.labels.values))
    if labelled.sum() >= FEWEST:
        rows = rows[labelled]
        truths = base.target.labels.take(test.rows[rows])
        predicted = transfer(np.arange(len(base.labels.values), dtype=np.int64), base.labels, source[rows])
        agree = float(np.isclose(predicted, truths.values).mean())
        skilled = skill(truths, predicted) if len(np.unique(truths.values)) > 1 else 0.0
        figures["share of the overlapping windows whose labels agree"] = round(agree, 4)
        severity = "high" if skilled >= 0.5 else "medium"
    return AuditFinding(
        kind="duplicates",
        severity=severity,
        message=f"Windows of {test.table.name} overlap windows of {base.table.name}: they are equal if shifted.",
        statistic=Statistic(name="share of test rows that overlap", value=share, baseline=chance, threshold=LEAST),
        figures=figures,
        examples=tuple(f"{test.table.name}: row {row + 1}" for row in rows[:3]),
    )


def _shifted_copies(theirs: Numbers, ours: Numbers, width: int) -> tuple[NDArray[np.bool_], Ints]:
    """Return which test rows are training rows shifted by one frame either way, and the training row of each (or
    -1)."""
    hit, source = np.zeros(len(theirs), dtype=bool), np.full(len(theirs), -1, dtype=np.int64)
    for mine, theirs_left in (
        (ours[:, :-width], theirs[:, width:]),
        (ours[:, width:], theirs[:, :-width]),
    ):
        keys, order = np.unique(_hashes(mine), return_index=True)
        wanted = _hashes(theirs_left)
        places = np.clip(np.searchsorted(keys, wanted), 0, len(keys) - 1)
        # Values are compared only if hashes match, as most windows have no match.
        met = np.flatnonzero(keys[places] == wanted)
        met = met[[len(np.unique(theirs_left[row])) >= _DISTINCT for row in met]]
        hit[met], source[met] = True, order[places[met]]
    return hit, source


def _hashes(rows: Numbers) -> NDArray[np.uint64]:
    """Return a hash of each row's bytes."""
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    factors = np.random.default_rng(1).integers(1, 2**63, size=rows.shape[1], dtype=np.uint64) | np.uint64(1)
    mixed = (bits ^ (bits >> np.uint64(29))) * factors
    return np.asarray((mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64))
