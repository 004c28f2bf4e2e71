"""Ids, their order, and positions of rows that predict the target."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from mleredux_audit_leaks.report import AuditFinding
from mleredux_audit_leaks.statistics import (
    Ints,
    Judged,
    Labels,
    as_numbers,
    judge,
    lookup_skill,
    neighbour_skill,
    skill,
)
from mleredux_audit_leaks.truth import Joined, Known, Truth, normal_ids

LEAST = 0.15
"""Minimum skill at which order is reported; it must also stand out from all permutations."""
BINS = 12
ROWS = 6000
_TOKENS = r"[^0-9A-Za-z]+"


def check_order(
    truth: Truth, joined: list[Joined], known: list[Known], notes: list[str], seed: int
) -> Iterator[AuditFinding]:
    """Check the order of public rows, the order and parts of ids, and the nearest ids of training rows."""
    if len(truth) > ROWS:
        notes.append(f"Order and ids were judged on {ROWS} of {len(truth)} answers.")
    checked_orders: set[bytes] = set()
    yield from _positions(truth, joined, checked_orders, seed)
    if truth.id_columns:
        yield from _ids(truth, checked_orders, seed)
        yield from _nearest(truth, known, seed)


def _positions(truth: Truth, joined: list[Joined], checked_orders: set[bytes], seed: int) -> Iterator[AuditFinding]:
    for joint in joined:
        rows = joint.rows[np.sort(np.unique(joint.rows, return_index=True)[1])]
        if joint.by != "id" or len(rows) < 0.5 * len(truth.first_rows) or rows.tobytes() in checked_orders:
            continue
        checked_orders.add(rows.tobytes())
        yield from _ordered(truth, rows, f"the order of the rows of {joint.table.name}", joint.table.name, seed)


def _ids(truth: Truth, checked_orders: set[bytes], seed: int) -> Iterator[AuditFinding]:
    texts = truth.ids.to_series().astype(str).reset_index(drop=True)
    numbers = as_numbers(texts)
    order = np.argsort(numbers, kind="stable") if numbers is not None else np.argsort(texts.to_numpy(), kind="stable")
    if order.astype(np.int64).tobytes() not in checked_orders:
        yield from _ordered(truth, order.astype(np.int64), "the order of the ids", "ids of the test rows", seed)
    picked = _spread(len(texts))
    parts = texts.iloc[picked].str.split(_TOKENS, regex=True, expand=True).fillna("")
    tokens = {f"part {place + 1} of the ids": parts.iloc[:, place] for place in range(min(parts.shape[1], 8))}
    if numbers is None:
        chosen = texts.iloc[picked]
        tokens |= {"the first letter of the ids": chosen.str[0], "the last letter of the ids": chosen.str[-1]}
        tokens |= {"the letters at the beginning of the ids": chosen.str.extract(r"^([A-Za-z]+)")[0].fillna("")}
        tokens |= {"the length of the ids": chosen.str.len().astype(str)}
    else:
        whole = pd.Series(numbers[picked])
        tokens |= {f"the ids modulo {divisor}": (whole % divisor).astype(str) for divisor in (2, 3, 4, 5, 7, 10)}
    for target in truth.targets:
        labels = target.labels.take(picked)
        if labels.kind == "text":
            continue
        for name, values in tokens.items():
            codes = pd.factorize(values)[0].astype(np.int64)
            # Parts that identify single rows predict nothing alone; parts that identify groups are checked with groups.
            if not 1 < codes.max() + 1 <= max(2, len(codes) // 10):
                continue
            judged = judge(partial(lookup_skill, codes), labels, least=LEAST, seed=seed)
            if judged:
                severity = _by_skill(judged.value) if len(truth.id_columns) == 1 else "low"
                yield _finding("id", severity, name, target.name, judged, "ids of the test rows")


def _nearest(truth: Truth, known: list[Known], seed: int) -> Iterator[AuditFinding]:
    """Yield a finding if the label of a test row is predicted by the training row with the nearest numeric id."""
    if len(truth.id_columns) != 1:
        return
    name = truth.id_columns[0]
    test_ids = pd.to_numeric(truth.ids.to_series(), errors="coerce").to_numpy(dtype=float)
    for train in known:
        if name not in train.table.frame or np.isnan(test_ids).any():
            continue
        ids = pd.to_numeric(normal_ids(train.table.frame[name]), errors="coerce").to_numpy(dtype=float)
        if np.isnan(ids).any() or np.isin(test_ids, ids).mean() > 0.1 or len(np.unique(ids)) < 0.9 * len(ids):
            continue
        order = np.argsort(ids, kind="stable")
        places = np.clip(np.searchsorted(ids[order], test_ids), 1, len(ids) - 1)
        below, above = ids[order][places - 1], ids[order][places]
        nearest = order[np.where(test_ids - below <= above - test_ids, places - 1, places)]
        picked = _spread(len(test_ids))
        truths = train.target.labels.take(picked)
        chosen = nearest[picked]

        def measure(y: Labels, chosen: Ints = chosen, truths: Labels = truths) -> float:
            return skill(truths, y.values[chosen])

        judged = judge(measure, train.labels, least=LEAST, seed=seed)
        if judged:
            predictor = f"the label of the row of {train.table.name} with the nearest id"
            yield _finding("id", _by_skill(judged.value), predictor, train.target.name, judged, train.table.name)


def _ordered(truth: Truth, rows: Ints, order: str, where: str, seed: int) -> Iterator[AuditFinding]:
    """Check sortedness (a coarse function of the position) and similarity of neighbors along an order of the
    answers."""
    spread, start = rows[_spread(len(rows))], rows[:ROWS]
    for target in truth.targets:
        if target.labels.kind == "text" or len(rows) < 12:
            continue
        labels = target.labels.take(spread)
        bins = (np.arange(len(spread)) * BINS // len(spread)).astype(np.int64)
        trend = judge(partial(lookup_skill, bins), labels, least=LEAST, seed=seed)
        if trend:
            severity = "high" if trend.value >= 0.7 else "medium" if trend.value >= 0.3 else "low"
            # Ids of several parts (such as a drive and a time) define the question, and their order is that of the
            # series.
            severity = severity if len(truth.id_columns) == 1 else "low"
            yield _finding("order", severity, order, target.name, trend, where)
            continue
        near = target.labels.take(start)
        judged = judge(neighbour_skill, near, least=LEAST, seed=seed)
        if judged is None:
            continue
        classes, runs = len(np.unique(near.values)), int((np.diff(near.values) != 0).sum()) + 1
        blocks = near.kind == "class" and runs <= 2 * classes
        # Neighbors in time are similar in any series; only blocks or a trend reveal labels without a model.
        severity = "high" if blocks else "medium" if near.kind == "class" and judged.value >= 0.5 else "low"
        yield _finding("order", severity, f"similarity of neighbors in {order}", target.name, judged, where)


def _finding(kind: str, severity: str, predictor: str, target: str, judged: Judged, where: str) -> AuditFinding:
    return AuditFinding(
        kind=kind,
        severity=severity,
        message=f"{predictor[0].upper()}{predictor[1:]} predicts {target!r} of the test rows.",
        statistic=judged.statistic("skill", LEAST),
        examples=(where,),
    )


def _by_skill(value: float) -> str:
    return "high" if value >= 0.7 else "medium" if value >= 0.3 else "low"


def _spread(count: int) -> Ints:
    """Return at most `ROWS` indices, evenly spaced over all rows."""
    return np.unique(np.linspace(0, count - 1, min(count, ROWS)).astype(np.int64)) if count else np.zeros(0, np.int64)
