"""Leakage: duplicates across the split, columns that predict the target too well, and the proposed removals.

Efficacy is deterministic. Naive: keeping everything, 0. Strong: dropping all leaks and nothing else, 1. In between, it
is the share of leaks dropped times the share of honest strength (how well columns predict the target) kept.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mleredux_techniques._kit.data import association
from mleredux_techniques._kit.data.association import ranks, spearman, strength, strengths
from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance, refusal
from mleredux_techniques._kit.data.near import duplicates, twin_correlation
from mleredux_techniques._kit.data.skill import Judge
from mleredux_techniques._kit.data.splits import sampled
from mleredux_techniques._kit.data.views import in_bins
from mleredux_techniques._kit.judging.marks import Efficacy, Figure, Sheet, listing, shortened, soft_f1
from mleredux_techniques.leakage.document import LeakageAnalysis, Risk
from mleredux_techniques.leakage.losses import losses

LEAST_STRENGTH = 0.05
"""Minimum strength assigned to a column, so that dropping an uninformative column is not free."""
MONOTONE = 0.8
"""The strength of a weaker column may say little about how it leaks, so any claim about it is accepted."""
SORTED = 0.9
"""Minimum rank correlation with the rows' order of a feature that they are sorted by."""
ORDER = 0.3
SURE = 5.0
"""Minimum strength of an order, in standard errors: a few rows may be ordered by chance."""
SHARED, TWINS = 0.02, 0.5
"""Duplicates leak above this share of test rows, if the targets of equal rows have at least this correlation."""
COLUMN_KINDS = ("copy", "noisy_copy", "target_encoding", "future_value")
TOP = 5
DOUBTED = 0.8
"""Weight of a claim about a column that the data can't judge, as a share of that of a false claim."""
GUESSED = 1 / 3
"""Risks keep this share of their score if column strengths are missing: a guess may be correct by chance."""


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return duplicates, strengths, and leaks: the planted ones, and those evident in the tables.

    Raises:
        NotApplicable: There is nothing to find or measure, so an empty answer would be correct.
    """
    repeated, shared = duplicates(dataset)
    strengths_of = strengths(dataset)
    leaks_of, unjudged = leaks(dataset, strengths_of, shared)
    if not (strengths_of or repeated or shared or leaks_of):
        raise refusal(dataset, "leakage", "its tables have no numeric column, repeated row or leak", planted=True)
    return {
        "duplicate_rows": repeated,
        "shared_rows": shared,
        "strengths": strengths_of,
        "leaks": leaks_of,
        "unjudged": unjudged,
    }


def leaks(dataset: Dataset, measured: dict[str, float], shared: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Return leaks, with each column in at most one, and columns that predict the target in both tables.

    A leak is `{"kinds": […], "columns": […], "strength": …, "planted": …}`: planted, declared by the base task, or
    found in the tables.

    Args:
        measured: Result of `strengths` for the dataset.
        shared: Number of test rows that (nearly) equal a training row in all features.
    """
    items = [dict(leak) for leak in dataset.planted.get("leaks", ())]
    for leak in items:
        known_strengths = [measured[name] for name in leak["columns"] if name in measured]
        leak["strength"] = max(known_strengths, default=None)
        if "duplicate_rows" in leak["kinds"]:
            leak["strength"] = round(shared / len(dataset.test), 6)
    for declared in dataset.known_leaks if not items else ():
        columns = [name for name in declared["columns"] if name in dataset.kinds]
        if columns:
            items.append({**_unclear_leak(columns, measured), "explanation": declared["explanation"]})
    if dataset.planted:  # only planted leaks exist here; drifting columns lose skill, too
        return items, [name for name in dataset.features if name not in {c for leak in items for c in leak["columns"]}]
    lost, holding = losses(sampled(dataset))
    for leak in [*_orders(dataset, measured), *_rows(dataset, shared)]:
        if not any(set(leak["kinds"]) & set(other["kinds"]) for other in items):
            items.append(leak)
    for names, skill in lost:
        known = {column for leak in items for column in leak["columns"]}
        if not known & set(names):
            leak = _unclear_leak(list(names), measured)
            if set(dataset.ids) & set(names):
                leak["kinds"] = ["id_order", *leak["kinds"]]
            shown = f"{skill.view.name!r} predicts the target with a skill of {skill.inside:.2f} on training rows"
            items.append({**leak, "explanation": f"{shown}, {skill.outside:.2f} on test rows"})
    known = {column for leak in items for column in leak["columns"]}
    return items, [name for name in holding if name not in known]


def _unclear_leak(columns: list[str], strengths_of: dict[str, float]) -> dict[str, Any]:
    """Return a leak whose kind the data can't show; its strength counts if the column is a monotone copy."""
    strength = strengths_of.get(columns[0], 0.0) if len(columns) == 1 else 0.0
    kinds = [*COLUMN_KINDS, *(["interaction"] if len(columns) > 1 else [])][::-1]
    return {"kinds": kinds, "columns": columns, "strength": strength if strength > MONOTONE else None, "planted": False}


def _orders(dataset: Dataset, strengths_of: dict[str, float]) -> list[dict[str, Any]]:
    """Return the ids, or else the order of the rows, if they reveal the target in a way not explained by the split's
    groups or time, or by a feature that the rows are sorted by.
    """
    judge = Judge(dataset)
    zeros = np.zeros(len(dataset.test))

    def reveals(values: Array, rank: float) -> bool:
        skill = float(judge.inside(in_bins("order", values, zeros)).max())
        in_order = rank >= _order_threshold(dataset) and skill >= ORDER / 2
        if not in_order and skill < max(ORDER, SURE / math.sqrt(len(values))):
            return False
        return not any(_sorted_by(values, dataset, name) for name in dataset.features)

    position = np.arange(len(dataset.train), dtype=float)
    orders = [
        ([name], strengths_of[name])
        for name in dataset.ids
        if name in strengths_of and reveals(dataset.train[name].to_numpy(dtype=float), strengths_of[name])
    ]
    rank = round(strength(position, dataset), 6)
    if not orders and reveals(position, rank):
        orders = [([], rank)]
    return [{"kinds": ["id_order"], "columns": names, "strength": value, "planted": False} for names, value in orders]


def _sorted_by(order: Array, dataset: Dataset, name: str) -> bool:
    """Return whether a feature explains the order of the rows."""
    if dataset.kinds[name] != "text":
        values = dataset.train[name].to_numpy(dtype=float)
        known = ~np.isnan(values)
        return spearman(order[known], values[known]) > SORTED
    codes = np.unique(dataset.train[name].fillna("").to_numpy(dtype=str), return_inverse=True)[1]
    sizes, ranked = np.bincount(codes), ranks(order) - (len(order) + 1) / 2
    explained = (np.bincount(codes, ranked) ** 2 / sizes).sum() / max(float(ranked @ ranked), 1.0)
    return bool(len(sizes) < len(codes) / 2 and explained > SORTED**2)


def _rows(dataset: Dataset, shared: int) -> list[dict[str, Any]]:
    similarity = twin_correlation(dataset) if shared > SHARED * len(dataset.test) else 0.0
    if similarity is not None and similarity < TWINS:
        return []
    share = round(shared / len(dataset.test), 6)
    return [{"kinds": ["duplicate_rows"], "columns": [], "strength": share, "planted": False}]


def _order_threshold(dataset: Dataset) -> float:
    """Return the minimum strength of leaking ids: `ORDER`, or `SURE` standard errors of a zero strength if larger.

    H. B. Mann and D. R. Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger than the
    Other" (1947), for the smallest class; for numeric targets, the standard error of a rank correlation.
    """
    rows = len(dataset.train)
    if dataset.problem == "regression":
        return max(ORDER, SURE / math.sqrt(max(rows - 1, 1)))
    sizes = dataset.train[dataset.target].value_counts()
    smallest = int(min((size for size in sizes if size >= 5), default=1))
    return max(ORDER, SURE * 2 * math.sqrt((rows + 1) / (12 * smallest * max(rows - smallest, 1))))


def mark(sheet: Sheet, document: LeakageAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with the tables and the planted truth."""
    sheet.duplicates(document, truth)
    measured = _assess_strengths(sheet, document, truth["strengths"])
    _assess_risks(sheet, document, truth["leaks"], set(truth.get("unjudged", ())), measured)


def _assess_strengths(sheet: Sheet, document: LeakageAnalysis, strengths_of: dict[str, float]) -> bool:
    """Mark the strengths; return whether enough of them were measured, for risks to count."""
    wanted = min(TOP, len(strengths_of))
    if not wanted:
        return True
    least = sorted(strengths_of.values(), reverse=True)[wanted - 1]
    entries = {item.column: item.strength for item in document.feature_strengths}
    right = [
        name
        for name, value in entries.items()
        if name in strengths_of and strengths_of[name] >= least - 0.02 and abs(value - strengths_of[name]) <= 0.01
    ]
    best, score = shortened(strengths_of, wanted), soft_f1(min(len(right), wanted), len(entries), wanted)
    listed = listing(f"{name} {value:.3f}" for name, value in best.items())
    return sheet.mark("feature strengths", score, entries, best, listed=listed, right=len(right)) > 0.5


def _assess_risks(
    sheet: Sheet, document: LeakageAnalysis, true: list[dict[str, Any]], unjudged: set[str], measured: bool
) -> None:
    share, note = (1.0, "") if measured else (GUESSED, " Counts one third: too few column strengths are correct.")
    credit, handled, met, count, doubted = 0.0, 0.0, set[int](), 0, 0
    claims = _claims(document.risks, true)
    for risk, columns, place in claims:
        if place is None and columns and set(columns) <= unjudged:
            doubted += 1
            continue
        count += 1
        if place is None or place in met:
            continue
        met.add(place)
        leak = true[place]
        worth = 1.0 if risk.kind in leak["kinds"] else 0.5
        if leak["strength"] is not None and abs(risk.strength - leak["strength"]) > 0.05:
            worth /= 2
        if "interaction" in leak["kinds"] and len(columns) < len(leak["columns"]):
            worth /= 2
        credit += worth
        handled += risk.mitigation.name == ("drop_duplicates" if risk.kind == "duplicate_rows" else "drop_columns")
    wrong = count - len(met) + DOUBTED * doubted
    score = min(soft_f1(credit, len(met) + wrong, len(true)), (credit - wrong / 2) / len(true)) if true else 1 - wrong
    named = [f"{leak['kinds'][0]}({', '.join(leak['columns'])})".removesuffix("()") for leak in true]
    shown = [f"{name}: {leak['explanation']}" for name, leak in zip(named, true, strict=True) if "explanation" in leak]
    note_of = f" {'; '.join(shown[:5])}." if shown else ""
    open_ = f" Not judged: {listing(sorted(unjudged))}, which are equally predictive on test rows." if unjudged else ""
    shown_claims = [f"{risk.kind}({', '.join(columns)})".removesuffix("()") for risk, columns, _ in claims]
    of = len(true), count + doubted
    figures = {"listed": listing(named), "credit": credit, "count": count, "more": f"{note}{note_of}{open_}"}
    sheet.mark("risks", share * score, shown_claims, named, of=of, **figures)
    score = handled / max(len(true), count) if true else float(not (count or doubted))
    names = [risk.mitigation.name for risk in document.risks]
    sheet.mark("mitigations", share * score, names, len(true), of=of, note=note)


def _claims(risks: list[Risk], true: list[dict[str, Any]]) -> list[tuple[Risk, list[str], int | None]]:
    """Return the claims of the risks, each with the leak that it names: the columns of one leak form one claim, as do
    each other column and each risk without columns.
    """
    claims: list[tuple[Risk, list[str], int | None]] = []
    for risk in risks:
        if not risk.columns:
            claims.append((risk, [], _matching(risk, None, true)))
        places = {column: _matching(risk, column, true) for column in risk.columns}
        for place in dict.fromkeys(places.values()):
            columns = [column for column in risk.columns if places[column] == place]
            claims += [(risk, [column], None) for column in columns] if place is None else [(risk, columns, place)]
    return claims


def _matching(risk: Risk, column: str | None, true: list[dict[str, Any]]) -> int | None:
    for place, leak in enumerate(true):
        if column is not None and column in leak["columns"]:
            return place
        about_rows = "duplicate_rows" in leak["kinds"] or ("id_order" in leak["kinds"] and not leak["columns"])
        if about_rows and risk.kind in leak["kinds"]:
            return place
    return None


def measure(document: LeakageAnalysis, instance: Instance) -> Efficacy:
    """Compare the dropped columns and rows with the existing leaks, planted or not."""
    dataset = instance.dataset
    strengths = association.strengths(dataset)
    leaks = instance.truth["leaks"]
    leaking = {column for leak in leaks for column in leak["columns"]}
    dropped = {column for risk in document.risks if risk.mitigation.name == "drop_columns" for column in risk.columns}
    acted: set[str] = {risk.kind for risk in document.risks if risk.mitigation.name != "none"}
    removed = [leak for leak in leaks if _removed(leak, dropped, acted)]
    honest = {name: max(strengths.get(name, 0.0), LEAST_STRENGTH) for name in dataset.features if name not in leaking}
    lost = sorted(dropped & set(honest))
    kept = 1 - sum(honest[name] for name in lost) / max(sum(honest.values()), LEAST_STRENGTH)
    names = ", ".join(repr(name) for name in lost[:10]) or "none"
    text = f"Honest columns dropped: {names}; {kept:.2f} of the honest strength is kept."
    if leaks:
        score: float | None = round(len(removed) / len(leaks) * kept, 4)
        sentence = f"{len(removed)} of {len(leaks)} leaks would be dropped, and {kept:.2f} of the honest strength kept."
    elif lost:
        score, sentence = 0.0, "There is no leak in this data, but honest columns would be dropped."
    else:
        score, sentence = None, "There is no leak in this data, and nothing would be dropped: only the facts count."
    parts = [
        Figure("efficacy", score, sentence, score=score, weight=1.0 if score is not None else 0.0),
        Figure("leaks dropped", [len(removed), len(leaks)], "Share of the existing leaks that would be dropped."),
        Figure("honest strength kept", round(kept, 4), text),
    ]
    return Efficacy(parts=parts) if score is None else Efficacy(score, 0.0, 0.0, 1.0, score, parts)


def _removed(leak: dict[str, Any], dropped: set[str], acted: set[str]) -> bool:
    columns, kinds = leak["columns"], leak["kinds"]
    if "interaction" in kinds:  # a single column of the leak reveals nothing
        return bool(set(columns) & dropped)
    if columns:
        return set(columns) <= dropped
    return bool(set(kinds) & acted)  # these concern rows, not columns: duplicates, or the order of rows


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    truth, known = instance.truth, instance.truth["strengths"]
    strengths = [{"column": name, "strength": value} for name, value in list(known.items())[:TOP]]
    risks = [
        {
            "kind": leak["kinds"][0],
            "columns": leak["columns"],
            "strength": leak["strength"] or max((known.get(name, 0.0) for name in leak["columns"]), default=1.0),
            "mitigation": {"name": "drop_duplicates" if "duplicate_rows" in leak["kinds"] else "drop_columns"},
        }
        for leak in truth["leaks"]
    ]
    counts = {name: truth[name] for name in ("duplicate_rows", "shared_rows")}
    return {**counts, "feature_strengths": strengths, "risks": risks}
