"""Columns that predict the target in the training table but not in the test set, so that models that rely on them
fail."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mleredux_audit_leaks.report import AuditFinding, Statistic
from mleredux_audit_leaks.statistics import Floats, Ints, Labels, as_numbers, lookup_skill, skill, transfer
from mleredux_audit_leaks.truth import Joined, Known, Truth, normal_values

LOST = 0.25
"""Minimum loss of skill on the test set; the loss must also be at least half of the skill."""
LEAST_ROWS = 100
MOST_COLUMNS = 300
ROWS = 4000
ROWS_A_BIN = 25
LEAST_GROUPS = 20
_RANGES = 5
_SHIFTED = 0.5
"""Share of test rows whose values are distributed differently from training; beyond it, the test set is a different
population."""


def check_train_columns(truth: Truth, joined: list[Joined], known: list[Known], seed: int) -> Iterator[AuditFinding]:
    """Compare how well each column predicts the target within the training table, and how well that carries over to the
    test set.
    """
    for one in joined:
        if truth.is_sample(one.table.name) or any(one.table.name == train.table.name for train in known):
            continue
        for train in known:
            names = [name for name in train.features if name in one.table.frame and name not in truth.id_columns]
            rng = np.random.default_rng(seed)
            ours, theirs = (_some(len(frame), rng) for frame in (train.table.frame, one.table.frame))
            if min(len(ours), len(theirs)) < LEAST_ROWS:
                continue
            values = train.labels.take(ours), train.target.labels.take(one.rows[theirs])
            labels, asked = _classes(*values) if values[0].kind == "number" else values
            for name in names[:MOST_COLUMNS]:
                columns = train.table.frame[name].iloc[ours], one.table.frame[name].iloc[theirs]
                if _of_groups(*columns):
                    continue
                lost = [_skills(a, b, labels, asked) for a, b in _codes(*columns)]
                inside, outside = max(lost, key=lambda found: found[0] - found[1], default=(0.0, 0.0))
                if inside - outside >= LOST and outside < inside / 2:
                    yield AuditFinding(
                        kind="column",
                        severity="medium",
                        message=f"Column {name!r} predicts {train.target.name!r} in {train.table.name}, but not in "
                        f"{one.table.name}: it may be filled after the target is known.",
                        statistic=Statistic(name="skill in training", value=inside, baseline=outside, threshold=LOST),
                        figures={"training rows": len(ours), "test rows": len(theirs)},
                        examples=(f"{train.table.name}: {name}",),
                    )


def _of_groups(ours: pd.Series, theirs: pd.Series) -> bool:
    """Return whether values repeat and the test set has different ones, as with names of groups that the split keeps
    apart."""
    values = ours.unique()
    repeated = LEAST_GROUPS <= len(values) <= len(ours) / 2
    return bool(repeated and theirs.nunique() > 1 and theirs.isin(values).mean() < _SHIFTED)


def _some(count: int, rng: np.random.Generator) -> Ints:
    return np.sort(rng.permutation(count)[:ROWS])


def _classes(ours: Labels, theirs: Labels) -> tuple[Labels, Labels]:
    """Return numbers as classes, namely ranges with equal numbers of training rows, so that any dependence counts."""
    edges = np.quantile(ours.values, np.linspace(0, 1, _RANGES + 1)[1:-1])
    codes = [np.searchsorted(edges, labels.values, "right").astype(float) for labels in (ours, theirs)]
    return Labels("class", codes[0]), Labels("class", codes[1])


def _skills(ours: Ints, theirs: Ints, labels: Labels, asked: Labels) -> tuple[float, float]:
    """Return the skill within the training table, and that carried over to the test set; (0, 0) if the test set has
    different values."""
    count = int(ours.max(initial=-1)) + 1
    shares = [np.bincount(codes[codes >= 0], minlength=count) / len(codes) for codes in (ours, theirs)]
    constant = np.bincount(theirs + 1).max() > 0.95 * len(theirs)
    if not constant and 1 - np.minimum(*shares).sum() > _SHIFTED:
        return 0.0, 0.0
    found: Floats = transfer(ours, labels, theirs)
    return lookup_skill(ours, labels), max(skill(asked, found), 0.0)


def _codes(ours: pd.Series, theirs: pd.Series) -> Iterator[tuple[Ints, Ints]]:
    """Yield the encodings of a column: numbers in ranges; equal values; the first and last characters of texts."""
    known, asked = as_numbers(ours), as_numbers(theirs)
    if known is not None and asked is not None:
        bins = int(np.clip(len(known) // ROWS_A_BIN, 4, 32))
        edges = np.unique(np.quantile(known, np.linspace(0, 1, bins + 1)[1:-1]))
        yield _ranges(known, edges), _ranges(asked, edges)
    texts = normal_values(ours), normal_values(theirs)
    for part in (None, 0, -1):
        if part is not None and known is not None:
            return
        a, b = (values if part is None else values.str[part].fillna("") for values in texts)
        codes, names = pd.factorize(a)
        if len(names) <= len(codes) // 3:
            yield codes.astype(np.int64), pd.Index(names).get_indexer(pd.Index(b)).astype(np.int64)


def _ranges(values: Floats, edges: Floats) -> Ints:
    """Return the range of each value; a value that fills several quantiles has its own range."""
    return np.asarray(np.searchsorted(edges, values, "left") + np.searchsorted(edges, values, "right"), dtype=np.int64)
