"""Missing values: joint patterns, whether other columns predict the gaps, and the value of imputations.

Naive: the mean for numbers and the most frequent text, regardless of the mechanism. Strong: the best of six plans
within the training table, all of which make missing texts a separate category.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Dataset, Instance, refusal
from mleredux_techniques._kit.judging.marks import Sheet, close, listing, soft_f1
from mleredux_techniques._kit.judging.study import OfColumns, Treatments
from mleredux_techniques._kit.vocabulary import imputers
from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS
from mleredux_techniques.missing.document import MissingAnalysis
from mleredux_techniques.missing.mechanisms import FEWEST, TOGETHER, mechanisms

_FREQUENT = imputers.SimpleImputer(name="SimpleImputer", strategy="most_frequent")
_CATEGORY = imputers.SimpleImputer(name="SimpleImputer", strategy="constant")
_MEAN, _NEAR = imputers.SimpleImputer(name="SimpleImputer"), imputers.KNNImputer(name="KNNImputer")
_MODEL = imputers.IterativeImputer(name="IterativeImputer")
IMPUTERS: tuple[imputers.Imputation, ...] = tuple(
    how.model_copy(update={"add_indicator": marked}) for how in (_MEAN, _NEAR, _MODEL) for marked in (False, True)
)
"""Candidate imputations of numbers for the strong choice, the simplest first."""

JUDGED_COLUMNS = 60
MECHANISMS = 0.55
"""The weight of the mechanisms, if any can be judged."""
GUESSED, OPEN, UNDECIDED = 0.2, 0.5, 0.25
"""Credit for MAR with a wrong column or confused with MNAR, and for MNAR that the data can't decide; weight of a column
that may be MCAR or MAR."""


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return counts and patterns of missing values in the features of the training table.

    Raises:
        NotApplicable: There are no missing values.
    """
    train = dataset.train[list(dataset.features)]
    gaps = train.isna()
    counts = {str(name): int(count) for name, count in gaps.sum().items() if count}
    if not counts:
        raise refusal(dataset, "missing", "no feature of its training table has missing values", planted=True)
    planted = {item["column"]: item for item in dataset.planted.get("missing", ())}
    judged = list(counts)[:JUDGED_COLUMNS]
    by_column = mechanisms(dataset, [name for name in judged if name not in planted])
    return {
        "complete_rows": int((~gaps.any(axis=1)).sum()),
        "counts": counts,
        "together": _together(dataset, list(counts)),
        "mechanisms": {name: planted.get(name) or by_column[name] for name in judged},
    }


def _together(dataset: Dataset, columns: list[str]) -> list[list[Any]]:
    gaps = dataset.train[columns].isna().to_numpy(dtype=np.float64)
    both = gaps.T @ gaps
    alone = np.diag(both)
    alike = (both > 0) & (both >= TOGETHER * (alone[:, None] + alone - both))
    return [[columns[a], columns[b], int(both[a, b])] for a, b in np.argwhere(np.triu(alike, 1))]


def mark(sheet: Sheet, document: MissingAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with the table."""
    counts: dict[str, int] = truth["counts"]
    entries = {item.column: item for item in document.columns}
    marks = {name: close(item.missing, counts[name]) for name, item in entries.items() if name in counts}
    sheet.number("complete rows", document.complete_rows, truth["complete_rows"])
    sheet.claims("columns with missing values", entries, counts)
    stated, right = {name: item.missing for name, item in entries.items()}, sum(marks.values())
    shown = {"listed": listing(f"{n} {count:,}" for n, count in counts.items()), "right": right, "all": len(counts)}
    score = right / len(set(counts) | set(entries))
    sheet.mark("missing counts", score, stated, counts, **shown)
    _assess_together(sheet, document, truth)
    _assess_mechanisms(sheet, document, truth, {name for name, mark in marks.items() if mark == 1})


def _assess_together(sheet: Sheet, document: MissingAnalysis, truth: dict[str, Any]) -> None:
    true = {frozenset(pair[:2]): pair[2] for pair in truth["together"]}
    pairs: dict[frozenset[str], tuple[int, float]] = {}
    for group in document.together:
        # in a larger group, fewer rows lack all columns than any two of them
        least = 0.9 if len(group.columns) == 2 else 0.5
        pairs |= {frozenset(two): (group.rows, least) for two in itertools.combinations(sorted(group.columns), 2)}
    right = [
        two for two, (rows, least) in pairs.items() if two in true and least * true[two] <= rows <= 1.1 * true[two]
    ]
    surplus = max(0, len(right) - MAX_ITEMS)  # a document can't list more pairs
    score = soft_f1(len(right) - surplus, len(pairs) - surplus, min(len(true), MAX_ITEMS))
    shown = [" + ".join(pair[:2]) for pair in truth["together"]]
    counts = len(true), len(pairs)
    sheet.mark("missing together", score, len(pairs), shown, of=counts, count=len(true), right=len(right))


def _assess_mechanisms(sheet: Sheet, document: MissingAnalysis, truth: dict[str, Any], right: set[str]) -> None:
    """Mark the mechanisms; each counts equally, whether it is rare or frequent."""
    facts: dict[str, dict[str, Any]] = truth["mechanisms"]
    stated = {item.column: item for item in document.columns}
    credits, weights = defaultdict[str, float](float), defaultdict[str, float](float)
    judged, correct = False, 0.0
    for name, fact in facts.items():
        if fact.get("open"):
            continue
        mechanism = stated[name].mechanism if name in right else None
        accepted = {*fact.get("accepted", (fact["mechanism"],))}
        worth = 1.0 if mechanism in accepted else GUESSED if mechanism in fact["half"] else 0.0
        if mechanism in fact.get("unjudged", ()):
            worth = OPEN
        elif mechanism == fact["mechanism"] == "MAR" and fact["depends_on"] and not _hit(stated[name].depends_on, fact):
            worth = GUESSED
        weight = UNDECIDED if {"MAR", "MCAR"} <= accepted and worth == 1 else 1.0
        judged |= mechanism not in fact.get("unjudged", ()) and weight == 1
        correct += worth
        credits[fact["mechanism"]] += weight * worth
        weights[fact["mechanism"]] += weight
    score = sum(credits[kind] / weight for kind, weight in weights.items()) / max(len(weights), 1)
    true = {name: fact["mechanism"] for name, fact in facts.items() if not fact.get("open")}
    said_of = {name: stated[name].mechanism for name in true if name in stated}
    notes = {
        "MNAR counts half, since nothing predicts the gaps": [name for name in true if facts[name].get("unjudged")],
        f"Not judged, with fewer than {FEWEST} gaps or values": [name for name in facts if name not in true],
    }
    figures = {
        "weight": MECHANISMS if weights else 0.0,
        "listed": listing(f"{name} {mechanism}" for name, mechanism in true.items()),
        "right": correct,
        "all": len(true),
        "of": (len(true), 0),
        "more": "".join(f" {note}: {listing(names)}." for note, names in notes.items() if names),
    }
    sheet.mark("mechanisms", 2 * score - 1, said_of, true, decides=judged, **figures)
    driven = {
        name: fact
        for name, fact in facts.items()
        if fact["mechanism"] == "MAR"
        and fact["depends_on"]
        and not (name in right and stated[name].mechanism in {*fact.get("accepted", ())} - {"MAR"})
    }
    if driven:
        hits = sum(_hit(stated[name].depends_on, fact) for name, fact in driven.items() if name in right)
        named = {name: stated[name].depends_on for name in driven if name in stated}
        known = {name: fact["depends_on"] for name, fact in driven.items()}
        sheet.mark("depends on", hits / len(driven), named, known, hits=hits, all=len(driven))


def _hit(named: list[str], fact: dict[str, Any]) -> float:
    """Return whether the first named column is a driver; for two joint drivers, the share of them named."""
    pair = fact.get("together") or ()
    if pair and named and named[0] in pair:
        return len(set(named[:4]) & set(pair)) / 2
    return float(bool(named) and named[0] in fact["depends_on"])


class Imputations(OfColumns):
    """An imputation for each column with missing values in either table."""

    kind, columns = "imputation", "columns"

    def naive(self, instance: Instance) -> Treatments:
        return _each(instance.dataset, _MEAN, _FREQUENT)

    def panel(self, instance: Instance) -> Sequence[Treatments]:
        plans = [_each(instance.dataset, how, _CATEGORY) for how in IMPUTERS]
        return [plan for place, plan in enumerate(plans) if plan not in plans[:place]]

    def quick(self, instance: Instance) -> Sequence[Treatments]:
        return self.panel(instance)[:2][-1:]

    def given(self, document: MissingAnalysis, instance: Instance) -> Treatments:
        known = {name: how for name, how in self.listed(document).items() if name in instance.dataset.kinds}
        dropped = {name: how for name, how in known.items() if isinstance(how, imputers.DropColumn)}
        return {**super().given(document, instance), **dropped}


def _each(dataset: Dataset, numbers: imputers.Imputation, texts: imputers.Imputation) -> dict[str, imputers.Imputation]:
    features = list(dataset.features)
    gaps = dataset.train[features].isna().any() | dataset.test[features].isna().any()
    return {name: texts if dataset.kinds[name] == "text" else numbers for name in features if gaps[name]}


STUDY = Imputations()


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    truth, plan = instance.truth, STUDY.recommended(instance)
    columns = []
    for name, count in truth["counts"].items():
        fact = truth["mechanisms"].get(name, {"mechanism": "MCAR", "depends_on": []})
        causes = fact["depends_on"][:5] if fact["mechanism"] == "MAR" else []
        entry = {"column": name, "missing": count, "mechanism": fact["mechanism"], "depends_on": causes}
        columns.append({**entry, "imputation": plan.get(name, _FREQUENT.model_dump())})
    together = [{"columns": [a, b], "rows": rows} for a, b, rows in truth["together"][:MAX_ITEMS]]
    return {"complete_rows": truth["complete_rows"], "columns": columns, "together": together}
