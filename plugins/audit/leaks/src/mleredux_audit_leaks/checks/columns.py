"""Columns that predict the target: on the test set, or only in training, so that models that rely on them fail."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from statistics import NormalDist

import numpy as np
import pandas as pd

from mleredux_audit_leaks.report import AuditFinding, Statistic
from mleredux_audit_leaks.statistics import (
    Floats,
    Ints,
    Labels,
    as_numbers,
    column_skill,
    log10_arrangements,
    lookup_skill,
    skill,
    transfer,
)
from mleredux_audit_leaks.truth import Joined, Known, Target, Truth, normal_values

MEDIUM, HIGH = 0.9, 0.98
"""Minimum skill of a single column, by severity."""
CHANCE = -4.0
"""Decimal logarithm of the probability that a column fits the target by chance."""
ROWS = 4000
MOST_COLUMNS = 1000


def check_columns(
    truth: Truth, joined: list[Joined], known: list[Known], notes: list[str], seed: int
) -> Iterator[AuditFinding]:
    """Check each column of all tables whose rows match the answers."""
    for joint in joined:
        if truth.is_sample(joint.table.name):
            continue
        frame = joint.table.frame
        # A good model's predictions nearly determine the target; answers among them determine it without an error.
        predictions = truth.form is not truth.task.submission and "prediction" in joint.table.name.lower()
        names = [name for name in frame.columns if name not in truth.id_columns]
        if len(names) > MOST_COLUMNS:
            notes.append(f"Only {MOST_COLUMNS} of {len(names)} columns of {joint.table.name} were checked.")
            names = names[:MOST_COLUMNS]
        picked = np.arange(len(frame))
        if len(picked) > ROWS:
            picked = np.sort(np.random.default_rng(seed).choice(picked, ROWS, replace=False))
            notes.append(f"Columns of {joint.table.name} were checked on {ROWS} of its {len(frame)} rows.")
        rows = joint.rows[picked]
        for target in truth.targets:
            values = target.values.to_numpy()[rows]
            labels = target.labels.take(rows)
            possible = set(target.values)
            # Columns with other values cannot equal the target by chance.
            alike = sum(set(normal_values(frame[name].head(8))) <= possible for name in names) or 1
            for name in names:
                if labels.kind == "text" and str(name).startswith("length of "):
                    yield from _count(frame[name].iloc[picked], values, str(name), joint, target, seed)
                    continue
                effect = _judge(frame[name].iloc[picked], values, labels, alike, len(names), seed)
                effect = effect or _pooled(name, frame[name].iloc[picked], labels, target, known, len(names))
                if effect and predictions and effect[2].value < 1:
                    exact = "medium", "identifies", effect[2]
                    effect = exact if _separates(frame[name].iloc[picked], labels) else None
                if effect:
                    severity, relation, statistic = effect
                    yield AuditFinding(
                        kind="column" if relation.startswith(("nearly", "identifies")) else "answers",
                        severity=severity,
                        message=f"Column {name!r} of {joint.table.name} {relation} {target.name!r} of the test rows.",
                        statistic=statistic,
                        figures={"rows compared": len(rows), "joined by": joint.by},
                        examples=(f"{joint.table.name}: {name}",),
                    )


def _count(
    column: pd.Series, values: np.ndarray, name: str, join: Joined, target: Target, seed: int
) -> Iterator[AuditFinding]:
    """Yield a finding if the length of a list predicts the number of words in a target value."""
    words = Labels("number", np.array([float(len(str(value).split())) for value in values]))
    if judged := column_skill(column.reset_index(drop=True), words, least=MEDIUM, seed=seed):
        yield AuditFinding(
            kind="column",
            severity="medium",
            message=f"The {name} of {join.table.name} reveals the number of words in {target.name!r} of the test rows.",
            statistic=judged.statistic("skill", MEDIUM),
            figures={"rows compared": len(values), "joined by": join.by},
            examples=(f"{join.table.name}: {name}",),
        )


def _judge(
    column: pd.Series, values: np.ndarray, labels: Labels, alike: int, tried: int, seed: int
) -> tuple[str, str, Statistic] | None:
    """Return severity, effect of the column, and the statistic; None if there is no effect."""
    cells = normal_values(column).to_numpy()
    usual = CHANCE - math.log10(tried)
    rarity = -log10_arrangements(labels)
    equal = float((cells == values).mean())
    share = partial(Statistic, name="share of equal values", value=equal, baseline=_chance(cells, values))
    if equal == 1 and rarity <= -2 - math.log10(alike):
        return "high", "is", share(threshold=1)
    if len(set(cells)) < 2:
        return None
    if labels.kind == "text":
        nearly = ("high" if equal >= HIGH else "medium"), "nearly is", share(threshold=0.5)
        return nearly if equal >= 0.5 and len(cells) >= 8 else None
    pairs = len(set(zip(cells, values, strict=True)))
    distinct = len(set(cells))
    if labels.kind == "class" and pairs == distinct == len(set(values)) and rarity <= usual:
        figure = Statistic(name="pairs per value", value=1.0, baseline=None, threshold=1)
        return "high", "is another spelling of", figure
    if len(cells) < 10 or rarity > usual:
        return None
    judged = column_skill(pd.Series(cells), labels, least=MEDIUM, seed=seed)
    if judged is None:
        return None
    severity = "high" if judged.value >= HIGH else "medium"
    return severity, "nearly determines" if judged.value < 1 else "identifies", judged.statistic("skill", MEDIUM)


def _separates(column: pd.Series, labels: Labels) -> bool:
    """Return whether the order of a column's numbers is one of the classes, or of the target's numbers."""
    numbers = as_numbers(column)
    if numbers is None:
        return False
    order = np.lexsort((labels.values, numbers))
    changes = np.flatnonzero(np.diff(labels.values[order]))
    distinct = bool((np.diff(numbers[order])[changes] > 0).all())
    return distinct and len(changes) + 1 == len(np.unique(labels.values))


def _chance(cells: np.ndarray, values: np.ndarray) -> float:
    """Return the expected share of equal cells after one of the columns is shuffled."""
    mine, theirs = pd.Series(cells).value_counts(normalize=True), pd.Series(values).value_counts(normalize=True)
    return float((mine * theirs.reindex(mine.index).fillna(0)).sum())


def _pooled(
    name: str, column: pd.Series, labels: Labels, target: Target, known: list[Known], tried: int
) -> tuple[str, str, Statistic] | None:
    """Apply `_one_sided` to test and training rows together, since few rows may differ from the usual value."""
    cells, values = normal_values(column).to_numpy(dtype=object), labels.values
    for train in known:
        if train.target is target and name in train.features:
            cells = np.concatenate([cells, normal_values(train.table.frame[name]).to_numpy(dtype=object)])
            values = np.concatenate([values, train.labels.values])
            break
    if labels.kind != "class" or len(cells) < 10:
        return None
    return _one_sided(cells.astype(str), Labels(labels.kind, values), CHANCE - math.log10(tried))


def _one_sided(cells: np.ndarray, labels: Labels, usual: float) -> tuple[str, str, Statistic] | None:
    """Return severity, effect and statistic if the minority of rows without a column's usual value are all of one
    class; else None."""
    common, counts = np.unique(cells, return_counts=True)
    if counts.max() < 0.5 * len(cells) or counts.max() == len(cells):
        return None
    rare = cells != common[counts.argmax()]
    classes = np.unique(labels.values[rare])
    if len(classes) != 1:
        return None
    of_class, size, n = int((labels.values == classes[0]).sum()), int(rare.sum()), len(cells)
    chance = (_log_choose(of_class, size) - _log_choose(n, size)) / math.log(10)
    covered, least = size / of_class, 0.05 - NormalDist().inv_cdf(10**usual) * math.sqrt(0.05 * 0.95 / of_class)
    if chance > usual or covered < least:
        return None
    figure = Statistic(name="share of one class identified", value=covered, baseline=0.0, threshold=least)
    return ("high" if covered >= 0.2 else "medium"), "identifies, by values other than the most frequent one,", figure


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) if k <= n else -math.inf


LOST = 0.25
"""Minimum loss of skill on the test set; the loss must also be at least half of the skill."""
LEAST_ROWS = 100
MOST_TRAIN_COLUMNS = 300
ROWS_A_BIN = 25
LEAST_GROUPS = 20
_RANGES, _VIEWS = 5, 3
_SHIFTED = 0.5
"""Share of test rows whose values are distributed differently from training; beyond it, the test set is a different
population."""


def check_train_columns(truth: Truth, joined: list[Joined], known: list[Known], seed: int) -> Iterator[AuditFinding]:
    """Compare how well each column predicts the target within the training table, and how well that carries over to the
    test set.
    """
    for joint in joined:
        if truth.is_sample(joint.table.name) or any(joint.table.name == train.table.name for train in known):
            continue
        for train in known:
            names = [name for name in train.features if name in joint.table.frame and name not in truth.id_columns]
            rng = np.random.default_rng(seed)
            ours, theirs = (np.sort(rng.permutation(len(side.table.frame))[:ROWS]) for side in (train, joint))
            if min(len(ours), len(theirs)) < LEAST_ROWS:
                continue
            values = train.labels.take(ours), train.target.labels.take(joint.rows[theirs])
            labels, test_labels = _classes(*values) if values[0].kind == "number" else values
            for name in names[:MOST_TRAIN_COLUMNS]:
                columns = train.table.frame[name].iloc[ours], joint.table.frame[name].iloc[theirs]
                if _of_groups(*columns):
                    continue
                lost = [_skills(a, b, labels, test_labels) for a, b in _codes(*columns)]
                inside, outside = max(lost, key=lambda skills: skills[0] - skills[1], default=(0.0, 0.0))
                tried = len(names) * len(known) * _VIEWS
                least = max(LOST, _lost_by_chance((inside, outside), labels, test_labels, tried))
                if inside - outside >= least and outside < inside / 2:
                    yield AuditFinding(
                        kind="column",
                        severity="medium",
                        message=f"Column {name!r} predicts {train.target.name!r} in {train.table.name}, but not in "
                        f"{joint.table.name}: it may be filled after the target is known.",
                        statistic=Statistic(name="skill in training", value=inside, baseline=outside, threshold=least),
                        figures={"training rows": len(ours), "test rows": len(theirs)},
                        examples=(f"{train.table.name}: {name}",),
                    )


def _of_groups(ours: pd.Series, theirs: pd.Series) -> bool:
    """Return whether values repeat and the test set has different ones, as with names of groups that the split keeps
    apart."""
    values = ours.unique()
    repeated = LEAST_GROUPS <= len(values) <= len(ours) / 2
    return bool(repeated and theirs.nunique() > 1 and theirs.isin(values).mean() < _SHIFTED)


def _classes(ours: Labels, theirs: Labels) -> tuple[Labels, Labels]:
    """Return numbers as classes, namely ranges with equal numbers of training rows, so that any dependence counts."""
    edges = np.quantile(ours.values, np.linspace(0, 1, _RANGES + 1)[1:-1])
    codes = [np.searchsorted(edges, labels.values, "right").astype(float) for labels in (ours, theirs)]
    return Labels("class", codes[0]), Labels("class", codes[1])


def _skills(ours: Ints, theirs: Ints, labels: Labels, test_labels: Labels) -> tuple[float, float]:
    """Return the skill within the training table, and that carried over to the test set; (0, 0) if the test set has
    different values."""
    count = int(ours.max(initial=-1)) + 1
    shares = [np.bincount(codes[codes >= 0], minlength=count) / len(codes) for codes in (ours, theirs)]
    constant = np.bincount(theirs + 1).max() > 0.95 * len(theirs)
    if not constant and 1 - np.minimum(*shares).sum() > _SHIFTED:
        return 0.0, 0.0
    predicted: Floats = transfer(ours, labels, theirs)
    return lookup_skill(ours, labels), max(skill(test_labels, predicted, labels), 0.0)


def _lost_by_chance(skills: tuple[float, float], labels: Labels, test_labels: Labels, tried: int) -> float:
    """Return the loss of skill, from training to test, that one of several columns hardly reaches by chance."""
    share = float(np.bincount(labels.values.astype(int)).max() / len(labels.values))
    hits = zip((share + skill * (1 - share) for skill in skills), (labels, test_labels), strict=True)
    error = math.sqrt(sum(hit * (1 - hit) / len(known.values) for hit, known in hits))
    return -NormalDist().inv_cdf(10**CHANCE / tried) * error / max(1 - share, 1e-9)


def _codes(ours: pd.Series, theirs: pd.Series) -> Iterator[tuple[Ints, Ints]]:
    """Yield the encodings of a column: numbers in ranges; equal values; the first and last characters of texts."""
    train_numbers, test_numbers = as_numbers(ours), as_numbers(theirs)
    if train_numbers is not None and test_numbers is not None:
        bins = int(np.clip(len(train_numbers) // ROWS_A_BIN, 4, 32))
        edges = np.unique(np.quantile(train_numbers, np.linspace(0, 1, bins + 1)[1:-1]))
        yield _ranges(train_numbers, edges), _ranges(test_numbers, edges)
    texts = normal_values(ours), normal_values(theirs)
    for part in (None, 0, -1):
        if part is not None and train_numbers is not None:
            return
        a, b = (values if part is None else values.str[part].fillna("") for values in texts)
        codes, names = pd.factorize(a)
        if len(names) <= len(codes) // 3:
            yield codes.astype(np.int64), pd.Index(names).get_indexer(pd.Index(b)).astype(np.int64)


def _ranges(values: Floats, edges: Floats) -> Ints:
    """Return the range of each value; a value that fills several quantiles has its own range."""
    return np.asarray(np.searchsorted(edges, values, "left") + np.searchsorted(edges, values, "right"), dtype=np.int64)
