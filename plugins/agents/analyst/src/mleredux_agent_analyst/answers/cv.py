"""How the test set was split off: by group, by time, or at random."""

from __future__ import annotations

from typing import Any

from mleredux_agent_analyst.tables import Tables, duplicates, is_date, seconds

SHARED = 0.02
ROWS_A_GROUP = 1.5
SEPARATORS = ("_", "-", "/", ":")


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document: groups are values that repeat in training rows, but rarely occur in the test table."""
    repeated, shared = duplicates(tables)
    classes = tables.classes
    counts = tables.labels.value_counts() if classes else None
    problem = "regression" if counts is None else "binary" if len(counts) <= 2 else "multiclass"
    groups, time = _groups(tables), _time(tables)
    method: dict[str, Any] = {"name": "StratifiedKFold" if classes else "KFold", "n_splits": 5, "shuffle": True}
    if groups is not None:
        name = "StratifiedGroupKFold" if classes else "GroupKFold"
        method = {"name": name, "groups": groups["key"], "n_splits": 5}
    elif time is not None:
        method = {"name": "TimeSeriesSplit", "time_column": time, "n_splits": 5}
    return {
        "target": tables.target,
        "problem": problem,
        "train_rows": len(tables.train),
        "test_rows": 0 if tables.test is None else len(tables.test),
        "smallest_class": None if counts is None else int(counts.min()),
        "duplicate_rows": repeated,
        "shared_rows": shared,
        "groups": groups,
        "time": {"column": time, "test_after_train": True} if time else None,
        "method": method,
    }


def _groups(tables: Tables) -> dict[str, Any] | None:
    if tables.test is None:
        return None
    best: dict[str, Any] | None = None
    for name in (*tables.ids, *tables.features):
        values = tables.train[name]
        if tables.kinds[name] != "text" or name not in tables.test or is_date(values):
            continue
        texts = values.dropna().astype(str)
        marks = [mark for mark in SEPARATORS if texts.head(1_000).str.contains(mark, regex=False).mean() > 0.95]
        for mark in (None, *marks):
            ours, theirs = (
                (held.str.partition(mark)[0] if mark else held)
                for held in (texts, tables.test[name].dropna().astype(str))
            )
            known, test_keys = set(ours), set(theirs)
            rows = len(ours) - ours.value_counts().max()  # a single frequent value does not define groups
            if len(known) < 4 or len(test_keys) < 2 or rows < ROWS_A_GROUP * (len(known) - 1):
                continue
            if theirs.isin(known).mean() <= SHARED and (best is None or len(known) < best["train_groups"]):
                key = {"column": name, "separator": mark}
                best = {"key": key, "train_groups": len(known), "shared_groups": len(known & test_keys)}
    return best


def _time(tables: Tables) -> str | None:
    for name in tables.features:
        numbers = tables.thorough and tables.kinds[name] == "number"
        dates = tables.kinds[name] == "text" and is_date(tables.train[name])
        if tables.test is None or not (numbers or dates):
            continue
        train, test = seconds(tables.train[name]).dropna(), seconds(tables.test[name]).dropna()
        if len(train) and len(test) and test.quantile(SHARED) >= train.quantile(1 - SHARED):
            return name
    return None
