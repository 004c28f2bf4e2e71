"""Groups that training and test data share: repeated values or parts of ids whose rows have similar labels."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from mleredux_audit_leaks.report import AuditFinding, Statistic
from mleredux_audit_leaks.statistics import Labels, as_numbers, judge, skill, transfer
from mleredux_audit_leaks.tables import Table
from mleredux_audit_leaks.truth import Joined, Known, Truth

LEAST = 0.1
ROWS = 20_000
FEWEST_GROUPS = 8
_ENTITY = re.compile(
    r"(patient|subject|user|customer|speaker|author|group|session|sentence|site|scene|study|family|driver|trip|person"
    r"|recording|location|hotel|article|document|book|game|anchor|uid$|(^|_)pid$)",
    re.IGNORECASE,
)


def check_groups(truth: Truth, joined: list[Joined], known: list[Known], seed: int) -> Iterator[AuditFinding]:
    """Check columns (and parts of ids) that training rows share with test rows, in public tables or in the answers."""
    everywhere = np.arange(len(truth))
    tests = [(source.table.name, source.table.frame, source.rows) for source in joined if source.by == "id"]
    held = truth.frame.drop(columns=truth.target_columns)
    of_table: dict[str, set[str]] = {}
    for source in known:
        reported = of_table.setdefault(source.table.name, set())  # one target is enough to show a group
        for where, frame, rows in [*tests, ("the answers", held, everywhere)]:
            if where == source.table.name:
                continue
            for name, train, test in _candidates(truth, source, frame):
                if name in reported or len(test) < 8:
                    continue
                if finding := _judge(source, name, train, test, rows, where, seed):
                    reported.add(name)
                    yield finding


def check_id_parts(truth: Truth, joined: list[Joined], tables: list[Table]) -> Iterator[AuditFinding]:
    """Check for prefixes of ids (a book, a game, a patient) that test rows share with rows outside the test set."""
    tests = {joint.table.name for joint in joined}
    for name in truth.id_columns:
        test_ids = truth.frame[name].astype(str)
        for table in tables:
            if table.name in tests or truth.is_sample(table.name) or name not in table.frame:
                continue
            mine = table.frame[name].astype(str)
            for count, begins in _beginnings(test_ids):
                groups = set(mine.str.extract(f"^{begins}")[0].dropna())
                test_groups = test_ids.str.extract(f"^{begins}")[0]
                shared = float(test_groups.isin(groups).mean())
                if FEWEST_GROUPS <= len(groups) <= 0.5 * len(mine) and shared >= 0.2:
                    yield AuditFinding(
                        kind="groups",
                        severity="low",
                        message=f"Ids of test rows and of {table.name} share the first {count} parts of {name!r}.",
                        statistic=Statistic(name="share of such test rows", value=shared, baseline=0, threshold=0.2),
                        figures={"groups in train": len(groups)},
                        examples=(f"{table.name}: {name}",),
                    )
                    return


def _beginnings(ids: pd.Series) -> Iterator[tuple[int, str]]:
    """Yield the number of leading parts of ids and a pattern that matches them, from one part up to where parts
    identify single rows."""
    for count in range(1, 5):
        pattern = rf"((?:[^_:\-|]+[_:\-|]){{{count}}})(?=.)"
        parts = ids.head(5000).str.extract(f"^{pattern}")[0]
        if parts.notna().mean() < 0.95:
            return
        if parts.nunique() <= 0.5 * len(parts):
            yield count, pattern


def _candidates(truth: Truth, source: Known, frame: pd.DataFrame) -> Iterator[tuple[str, pd.Series, pd.Series]]:
    """Yield columns of both tables by name, and the leading part of ids that have two parts (`gggg_pp`)."""
    train = source.table.frame
    for name in source.features[:300]:
        if name not in frame:
            continue
        if name not in truth.id_columns:
            yield str(name), train[name], frame[name]
        mine, theirs = (_leading(part[name]) for part in (train, frame))
        if mine is not None and theirs is not None:
            yield f"first part of {name}", mine, theirs


def _leading(ids: pd.Series) -> pd.Series | None:
    parts = ids.astype(str).str.extract(r"^(.+)[_:](?=[^_:]*$)")[0]
    return parts if parts.notna().mean() > 0.95 and ids.nunique() > 0.9 * len(ids) else None


def _judge(
    source: Known, name: str, train: pd.Series, test: pd.Series, rows: np.ndarray, where: str, seed: int
) -> AuditFinding | None:
    usable = train.nunique()
    if usable < FEWEST_GROUPS or usable > 0.8 * len(train) or usable < 0.01 * len(train):
        return None
    rng = np.random.default_rng(seed)
    picked = np.sort(rng.permutation(len(test))[:ROWS])
    train, test, rows = train.reset_index(drop=True), test.iloc[picked].reset_index(drop=True), rows[picked]
    blank = (test.astype(str).str.strip() == "").to_numpy()
    codes = pd.factorize(pd.concat([train, test]).astype(str))[0].astype(np.int64)
    known, tested = codes[: len(train)], codes[len(train) :]
    tested = np.where(blank | ~np.isin(tested, known), -1, tested)
    if (shared := float((tested >= 0).mean())) < 0.05:
        return None
    truths = source.target.labels.take(rows)
    judged = judge(lambda y: skill(truths, transfer(known, y, tested)), source.labels, least=LEAST, seed=seed)
    figures: dict[str, float | int | str]
    figures = {"groups in train": int(usable), "share of test rows in them": round(shared, 4)}
    places = (f"{source.table.name}: {name}", where)
    if judged:
        rival = _near_values(train, test, source.labels, truths)
        if rival is None or judged.value - rival >= 0.15:
            severity = "high" if judged.value >= 0.8 and shared >= 0.5 else "medium" if judged.value >= 0.25 else "low"
            if rival is not None:
                figures["skill of the nearest other value"] = round(rival, 4)
            return AuditFinding(
                kind="groups",
                severity=severity,
                message=f"{source.table.name} rows that share a test row's {name!r} reveal its {source.target.name!r}.",
                statistic=judged.statistic("skill", LEAST),
                figures=figures,
                examples=places,
            )
    if _ENTITY.search(name) and shared >= 0.2:
        return AuditFinding(
            kind="groups",
            severity="low",
            message=f"Train and test share values of {name!r}, which seems to identify groups.",
            statistic=Statistic(name="share of test rows in shared groups", value=shared, baseline=0, threshold=0.2),
            figures=figures,
            examples=places,
        )
    return None


def _near_values(train: pd.Series, test: pd.Series, labels: Labels, truths: Labels) -> float | None:
    """Return the skill of the nearest unequal value: how well a smooth measurement that does not identify groups
    predicts the target."""
    mine, theirs = as_numbers(train), as_numbers(test)
    if mine is None or theirs is None:
        return None
    values, places = np.unique(mine, return_inverse=True)
    if len(values) < 3:
        return None
    at = np.clip(np.searchsorted(values, theirs), 0, len(values) - 1)
    below = np.clip(np.where(values[at] >= theirs, at - 1, at), 0, len(values) - 1)
    above = np.clip(np.where(values[at] <= theirs, at + 1, at), 0, len(values) - 1)
    known = places.astype(np.int64)
    return max(skill(truths, transfer(known, labels, side.astype(np.int64))) for side in (below, above))
