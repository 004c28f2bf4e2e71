"""Facts of `missing`: missing values, which are missing together, and whether other columns predict them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from mleredux.errors import NotApplicable

from mleredux_techniques._kit.association import tells_of
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.marks import close, component, f1, facts_of, finding, listing, shortened, versus
from mleredux_techniques._kit.results import Facts, Figure
from mleredux_techniques.missing.document import MissingAnalysis

TOGETHER = 0.5
"""Two columns are missing together if both are missing in at least this share of the rows in which either is."""
TELLING = 0.15
SURE = 1e-3
JUDGED_COLUMNS = 60
JUDGED_ROWS = 10_000

TOLERANCES = """\
- `complete_rows` (weight 0.1): within 1 % (half within 5 %)
- `columns` (0.2): F1 of the columns that have missing values
- `missing` of each of these (0.25): within 2 % (half within 10 %); columns that have none count against it
- `together` (0.15): F1 of the pairs of columns that are both missing in at least half of the rows in which either is
  (a group of three is three pairs; `rows` must be right within 10 %, of a larger group's pairs at least half)
- `mechanism` (0.2): MAR if another column predicts whether it is missing (|2 AUC - 1| or Cramér's V of 0.15 or more,
  p below 0.001 after correction for the number of columns), else MCAR; MNAR, which no data can prove, counts half.
  For planted missing values, the planted mechanism is the truth, and confusing MAR with MNAR counts half. Only columns
  with the correct `missing` count, and the first 10,000 rows
- `depends_on` (0.1, if something is MAR): the first column named is among the (nearly) most predictive ones
- a part in which there is nothing to find has a twentieth of its weight unless something is claimed"""


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return counts and patterns of missing values in the features of the training table.

    Raises:
        NotApplicable: There are no missing values.
    """
    train = dataset.train[list(dataset.features)]
    gaps = train.isna()
    counts = {str(name): int(count) for name, count in gaps.sum().items() if count}
    if not counts:
        raise NotApplicable(
            f"missing does not apply to {dataset.task}: no feature of its training table has missing values.",
            hint=f"Try missing+planted-1@{dataset.task}.",
        )
    planted = {item["column"]: item for item in dataset.planted.get("missing", ())}
    return {
        "complete_rows": int((~gaps.any(axis=1)).sum()),
        "counts": counts,
        "together": _together(dataset, list(counts)),
        "mechanisms": {name: planted.get(name) or _mechanism(dataset, name) for name in list(counts)[:JUDGED_COLUMNS]},
    }


def _together(dataset: Dataset, columns: list[str]) -> list[list[Any]]:
    gaps = dataset.train[columns].isna().to_numpy(dtype=np.float64)
    both = gaps.T @ gaps
    alone = np.diag(both)
    pairs = []
    for a, b in itertools.combinations(range(len(columns)), 2):
        either = alone[a] + alone[b] - both[a, b]
        if both[a, b] >= 5 and both[a, b] >= TOGETHER * either:
            pairs.append([columns[a], columns[b], int(both[a, b])])
    return pairs


def _mechanism(dataset: Dataset, column: str) -> dict[str, Any]:
    """Return the mechanism evident in the data: which other columns predict whether this one is missing."""
    train = dataset.train.head(JUDGED_ROWS)
    gap = train[column].isna().to_numpy()
    telling: dict[str, float] = {}
    for other in dataset.features:
        if other == column:
            continue
        strength, p = tells_of(gap, train[other], dataset.kinds[other])
        if strength >= TELLING and p * len(dataset.features) < SURE:
            telling[other] = round(strength, 4)
    best = max(telling.values(), default=0.0)
    near = [name for name, strength in telling.items() if strength >= 0.8 * best]
    mechanism = "MAR" if telling else "MCAR"
    return {"column": column, "mechanism": mechanism, "depends_on": near, "half": ["MNAR"], "planted": False}


def assess(document: MissingAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with the table."""
    counts: dict[str, int] = truth["counts"]
    given = {item.column: item for item in document.columns}
    marks = {name: close(item.missing, counts[name]) for name, item in given.items() if name in counts}
    return facts_of(
        [
            component(
                "complete rows",
                0.1,
                close(document.complete_rows, truth["complete_rows"], 0.01),
                versus(document.complete_rows, truth["complete_rows"]),
                f"{truth['complete_rows']:,} training rows have no missing feature.",
            ),
            component(
                "columns with missing values",
                0.2,
                f1(given, counts),
                versus(sorted(given)[:50], sorted(counts)[:50]),
                f"Missing values are in: {listing(counts)}.",
            ),
            component(
                "missing counts",
                0.25,
                sum(marks.values()) / len(set(counts) | set(given)),
                versus({name: item.missing for name, item in list(given.items())[:50]}, shortened(counts)),
                f"Missing values by column: {listing(f'{name} {count:,}' for name, count in counts.items())}. "
                f"{sum(marks.values()):g} of {len(counts)} were correct.",
            ),
            _assess_together(document, truth),
            *_assess_mechanisms(document, truth, {name for name, mark in marks.items() if mark == 1}),
        ]
    )


def _assess_together(document: MissingAnalysis, truth: dict[str, Any]) -> Figure:
    true = {frozenset(pair[:2]): pair[2] for pair in truth["together"]}
    given: dict[frozenset[str], tuple[int, float]] = {}
    for group in document.together:
        # in a larger group, fewer rows lack all columns than lack two of them
        least = 0.9 if len(group.columns) == 2 else 0.5
        given |= {frozenset(two): (group.rows, least) for two in itertools.combinations(sorted(group.columns), 2)}
    right = [
        two for two, (rows, least) in given.items() if two in true and least * true[two] <= rows <= 1.1 * true[two]
    ]
    score = 2 * len(right) / (len(given) + len(true)) if given or true else 1.0
    return finding(
        "missing together",
        0.15,
        score,
        versus(len(given), [" + ".join(pair[:2]) for pair in truth["together"][:20]]),
        f"{len(true)} pairs of columns are mostly missing in the same rows; {len(right)} were found.",
        true=len(true),
        given=len(given),
    )


def _assess_mechanisms(document: MissingAnalysis, truth: dict[str, Any], right: set[str]) -> list[Figure]:
    facts: dict[str, dict[str, Any]] = truth["mechanisms"]
    given = {item.column: item for item in document.columns}
    credit = 0.0
    for name in right & set(facts):
        fact, said = facts[name], given[name].mechanism
        credit += 1.0 if said == fact["mechanism"] else 0.5 if said in fact["half"] else 0.0
    parts = [
        component(
            "mechanisms",
            0.2,
            credit / len(facts),
            versus(
                {name: given[name].mechanism for name in list(facts)[:50] if name in given},
                {name: fact["mechanism"] for name, fact in list(facts.items())[:50]},
            ),
            f"Mechanisms: {listing(name + ' ' + fact['mechanism'] for name, fact in facts.items())}. {credit:g} of "
            f"{len(facts)} were correct (mechanisms that no data can distinguish count half).",
        )
    ]
    driven = {name: fact for name, fact in facts.items() if fact["mechanism"] == "MAR" and fact["depends_on"]}
    if driven:
        hits = [
            name for name in driven if name in right and _first(given[name].depends_on) in driven[name]["depends_on"]
        ]
        parts.append(
            component(
                "depends on",
                0.1,
                len(hits) / len(driven),
                versus(
                    {name: given[name].depends_on for name in list(driven)[:50] if name in given},
                    {name: fact["depends_on"] for name, fact in list(driven.items())[:50]},
                ),
                f"For {len(hits)} of {len(driven)} columns that are MAR, the first column named is predictive.",
            )
        )
    return parts


def _first(names: list[str]) -> str | None:
    return names[0] if names else None
