"""Long texts that training and test data share exactly or nearly: passages, prompts, sequences."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

import numpy as np
import pandas as pd

from mleredux_audit_leaks.report import AuditFinding, Statistic
from mleredux_audit_leaks.tables import Table
from mleredux_audit_leaks.truth import Joined, Truth

LONG = 24
"""Minimum mean number of characters in a column of texts."""
_TIME = r"\s*\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
LEAST_SHARED, LEAST_NEAR = 0.05, 0.01
FEWEST = 3
TESTS, TRAINS = 3000, 30_000
GRAM, SKETCH, ALIKE = 10, 24, 0.5
"""Number of characters in a shingle; number of smallest hashes kept for a text; share of them that similar texts have
in common."""
LONGEST = 4000


def check_texts(
    truth: Truth, joined: list[Joined], tables: list[Table], earlier: list[AuditFinding], seed: int
) -> Iterator[AuditFinding]:
    """Check for test texts that are also in a table of other rows, exactly or with few differences.

    Args:
        earlier: Earlier findings; columns and tables that they report as shared are skipped.
    """
    tests = {item.table.name: item.table for item in joined if item.by == "id"}
    # If answers refer to parts of a row (such as a position in a sequence), no table has their ids.
    tests |= {table.name: table for table in tables if re.search("test", PurePosixPath(table.name).name, re.IGNORECASE)}
    tests = {name: table for name, table in tests.items() if not truth.is_sample(name)}
    text = " ".join(item.message for item in earlier if item.kind in ("groups", "duplicates"))
    done: set[str] = set()
    for test in tests.values():
        ordered = test.frame.sort_index(axis=1)
        for other in tables:
            # Equal tables are not of rows, but of what rows refer to, such as licenses.
            skipped = (
                other.name in tests or truth.is_sample(other.name) or ordered.equals(other.frame.sort_index(axis=1))
            )
            if skipped or f"{test.name} have " in text:
                continue
            left_out = {*truth.id_columns, *truth.target_columns}
            for name in [name for name in test.frame if name in other.frame and name not in left_out]:
                cells, mine = test.frame[name], other.frame[name]
                if name in done or f"{name!r}" in text or not (_are_long(cells) and _are_long(mine)):
                    continue
                if finding := _judge(test.name, other.name, str(name), cells, mine, seed):
                    done.add(str(name))
                    yield finding


def _are_long(cells: pd.Series) -> bool:
    return bool(cells.str.len().mean() >= LONG and not cells.str.match(_TIME).mean() > 0.5)


def _judge(where: str, other: str, name: str, cells: pd.Series, mine: pd.Series, seed: int) -> AuditFinding | None:
    longer = cells[cells.str.len() >= LONG]
    equal = longer.isin(set(mine))
    share = float(equal.sum()) / len(cells)
    if share >= LEAST_SHARED and equal.sum() >= FEWEST:
        way, least, rows = "the same", LEAST_SHARED, equal[equal].index
    else:
        near = _near(longer, mine, seed)
        share = len(near) / max(min(len(longer), TESTS), 1)
        if share < LEAST_NEAR or len(near) < FEWEST:
            return None
        way, least, rows = "nearly the same", LEAST_NEAR, pd.Index(near)
    return AuditFinding(
        kind="groups",
        severity="medium" if share >= 0.2 else "low",
        message=f"Rows of {where} and {other} have {way} {name!r}.",
        statistic=Statistic(name="share of test rows", value=share, baseline=0, threshold=least),
        figures={"test rows": len(rows)},
        examples=tuple(f"{where}: row {int(row) + 1}" for row in rows[:3]),
    )


def _near(cells: pd.Series, mine: pd.Series, seed: int) -> list[int]:
    """Return test rows with a text that shares most of its shingles with a training text, by the smallest hashes of the
    shingles.

    The method follows Broder, *On the resemblance and containment of documents* (1997).
    """
    rng = np.random.default_rng(seed)
    known = pd.Series(mine.unique())
    where: dict[int, list[int]] = defaultdict(list)
    for place in rng.permutation(len(known))[:TRAINS]:
        for key in _sketch(known.iloc[place]):
            where[key].append(int(place))
    near = []
    for row in np.sort(rng.permutation(len(cells))[:TESTS]):
        sketch = _sketch(cells.iloc[row])
        # Shingles that occur in many texts belong to a template.
        votes = Counter(place for key in sketch if len(where.get(key, ())) <= 50 for place in where.get(key, ()))
        if len(sketch) == SKETCH and votes and votes.most_common(1)[0][1] >= ALIKE * SKETCH:
            near.append(int(cells.index[row]))
    return near


def _sketch(text: str) -> list[int]:
    data = np.frombuffer(text[:LONGEST].encode(), dtype=np.uint8).astype(np.uint64)
    count = len(data) - GRAM + 1
    if count < SKETCH:
        return []
    hashes = np.zeros(count, dtype=np.uint64)
    for step in range(GRAM):
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + data[step : step + count] + np.uint64(1)
    hashes ^= hashes >> np.uint64(31)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    return [int(key) for key in np.unique(hashes)[:SKETCH]]
