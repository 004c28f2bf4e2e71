"""Facts of `leakage`: duplicates across the split, and columns that predict the target too well."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from mleredux.errors import NotApplicable

from mleredux_techniques._kit.association import strength, strengths
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.marks import close, component, facts_of, finding, listing, soft_f1, versus
from mleredux_techniques._kit.results import Facts, Figure
from mleredux_techniques._kit.structure import duplicates
from mleredux_techniques.leakage.document import LeakageAnalysis, Risk

COPY = 0.995
"""A column of this strength is a copy of the target."""
ORDER = 0.3
SURE = 5.0
"""Minimum number of standard errors of an order's strength: a few rows may be ordered by chance."""
SHARED = 0.02
PURE = 0.99
COLUMN_KINDS = ("copy", "noisy_copy", "target_encoding", "future_value")
TOP = 5
GUESSED = 1 / 3
"""Risks have this share of their score if column strengths are missing: a guess may be correct by chance."""

TOLERANCES = """\
- `duplicate_rows`, `shared_rows` (weight 0.1 each): within 2 % (half within 10 %)
- `feature_strengths` (0.25): five columns (fewer if there are fewer), each with its strength within 0.01, that are
  among the strongest (a strength within 0.02 of the fifth's is); other columns count against it
- `risks` (0.5): F1 over leaks by column. A planted leak is the truth; besides those, the tables themselves count:
  with two classes or a numeric target, a column with a strength of 0.995 or more is a copy; ids or the order of rows
  with a strength of 0.3 or more, and of five standard errors or more (numeric targets: 5 / sqrt(n - 1); classes: 10
  sqrt((n + 1) / (12 m (n - m))), m rows of the smallest class of at least five), are id_order; more than 2 % of the
  test rows that share their features with a training row are duplicate_rows; with two classes, a column with one
  value in most rows and, in the others (at least 30), 99 % of one class, where no more than 90 % of all rows are of
  it, is a future_value (copy and noisy_copy are correct, too). The correct column with another kind counts half. A
  risk whose `strength` is off by more than 0.05 counts half
- `mitigation` (0.05): the share of leaks found that are to be dropped
- `risks` and `mitigation` count a third if `feature_strengths` is at most half correct: without measurements, they are
  guesses
- of `duplicate_rows`, `shared_rows`, `risks` and `mitigation`, one where there is nothing to find has a twentieth of
  its weight unless something is claimed"""


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return duplicates, strengths, and leaks: the planted ones, and those evident in the tables.

    Raises:
        NotApplicable: There is nothing to find or measure, so an empty answer would be correct.
    """
    repeated, shared = duplicates(dataset)
    told = strengths(dataset)
    if not (told or repeated or shared or dataset.planted.get("leaks")):
        raise NotApplicable(
            f"leakage does not apply to {dataset.task}: its tables have no numeric column and no repeated row.",
            hint=f"Try leakage+planted-1@{dataset.task}.",
        )
    return {
        "duplicate_rows": repeated,
        "shared_rows": shared,
        "strengths": told,
        "leaks": leaks(dataset, told, shared),
    }


def leaks(dataset: Dataset, told: dict[str, float], shared: int) -> list[dict[str, Any]]:
    """Return leaks as `{"kinds": […], "columns": […], "strength": …, "planted": …}`, each column at most once.

    Args:
        told: `strengths` of the dataset.
        shared: Test rows that share their features with a training row.
    """
    found = [dict(leak) for leak in dataset.planted.get("leaks", ())]
    for leak in found:
        leak["strength"] = _strength_of(leak, told, shared / len(dataset.test))
    known = {column for leak in found for column in leak["columns"]}
    rows = round(strength(np.arange(len(dataset.train), dtype=float), dataset), 6)
    planted_order = any("id_order" in leak["kinds"] for leak in found)
    for name, value in told.items():
        if name in known:
            continue
        if name in dataset.ids:
            if value >= _order_threshold(dataset) and not planted_order:
                found.append({"kinds": ["id_order"], "columns": [name], "strength": value, "planted": False})
        elif value >= COPY and dataset.problem != "multiclass":
            found.append({"kinds": ["copy", "noisy_copy"], "columns": [name], "strength": value, "planted": False})
    if rows >= _order_threshold(dataset) and not any("id_order" in leak["kinds"] for leak in found):
        found.append({"kinds": ["id_order"], "columns": [], "strength": rows, "planted": False})
    if shared > SHARED * len(dataset.test) and not any("duplicate_rows" in leak["kinds"] for leak in found):
        share = round(shared / len(dataset.test), 6)
        found.append({"kinds": ["duplicate_rows"], "columns": [], "strength": share, "planted": False})
    known = {column for leak in found for column in leak["columns"]}
    for name in dataset.features:
        if name not in known and _gives_away(dataset, name):
            kinds = ["future_value", "copy", "noisy_copy"]
            found.append({"kinds": kinds, "columns": [name], "strength": told.get(name), "planted": False})
    return found


def _order_threshold(dataset: Dataset) -> float:
    """Return the strength from which ids are a leak: `ORDER`, or `SURE` standard errors of a strength of 0 if larger.

    H. B. Mann and D. R. Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger than the
    Other" (1947), for the smallest class; for numbers, that of a rank correlation.
    """
    rows = len(dataset.train)
    if dataset.problem == "regression":
        return max(ORDER, SURE / math.sqrt(max(rows - 1, 1)))
    sizes = dataset.train[dataset.target].value_counts()
    smallest = int(min((size for size in sizes if size >= 5), default=1))
    return max(ORDER, SURE * 2 * math.sqrt((rows + 1) / (12 * smallest * max(rows - smallest, 1))))


def _strength_of(leak: dict[str, Any], told: dict[str, float], shared: float) -> float | None:
    if "duplicate_rows" in leak["kinds"]:
        return round(shared, 6)
    return max((told[name] for name in leak["columns"] if name in told), default=None)


def _gives_away(dataset: Dataset, name: str) -> bool:
    """Whether nearly all rows that differ from the column's frequent value are of one class."""
    if dataset.problem != "binary":
        return False
    values = dataset.train[name].astype(object).where(dataset.train[name].notna(), "")
    most = values.value_counts().head(1)
    if len(most) == 0 or most.iloc[0] < 0.5 * len(values):
        return False
    target = dataset.train[dataset.target]
    others = target[(values != most.index[0]).to_numpy()]
    if len(others) < 30:
        return False
    shares = others.value_counts(normalize=True)
    return bool(shares.iloc[0] >= PURE and (target == shares.index[0]).mean() <= 0.9)


def assess(document: LeakageAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with the tables and the planted truth."""
    parts = [
        finding(
            name.replace("_", " "),
            0.1,
            close(getattr(document, name), truth[name]),
            versus(getattr(document, name), truth[name]),
            f"{truth[name]:,} {told}.",
            true=truth[name],
            given=getattr(document, name),
        )
        for name, told in (
            ("duplicate_rows", "training rows repeat the features of an earlier one"),
            ("shared_rows", "test rows have the features of a training row"),
        )
    ]
    told = _assess_strengths(document, truth["strengths"])
    measured = not truth["strengths"] or (told.score or 0.0) > 0.5
    return facts_of([*parts, told, *_assess_risks(document, truth["leaks"], measured)])


def _assess_strengths(document: LeakageAnalysis, told: dict[str, float]) -> Figure:
    wanted = min(TOP, len(told))
    if not wanted:
        return component("feature strengths", 0.0, 1.0, None, "There are no numeric columns.")
    least = sorted(told.values(), reverse=True)[wanted - 1]
    given = {item.column: item.strength for item in document.feature_strengths}
    right = [
        name
        for name, value in given.items()
        if name in told and told[name] >= least - 0.02 and abs(value - told[name]) <= 0.01
    ]
    best = dict(list(told.items())[:wanted])
    return component(
        "feature strengths",
        0.25,
        2 * min(len(right), wanted) / (len(given) + wanted),
        versus(dict(list(given.items())[:20]), best),
        f"The strongest columns: {listing(f'{name} {value:.3f}' for name, value in best.items())}; {len(right)} named "
        "with their strength.",
    )


def _assess_risks(document: LeakageAnalysis, true: list[dict[str, Any]], measured: bool) -> list[Figure]:
    share, note = (1.0, "") if measured else (GUESSED, " Counts a third, because too few column strengths are correct.")
    credit, handled, met = 0.0, 0.0, set()
    claims = _claims(document.risks)
    for risk, column in claims:
        place = _matching(risk, column, true)
        if place is None or place in met:
            continue
        met.add(place)
        leak = true[place]
        worth = 1.0 if risk.kind in leak["kinds"] else 0.5
        if leak["strength"] is not None and abs(risk.strength - leak["strength"]) > 0.05:
            worth /= 2
        credit += worth
        handled += risk.mitigation.name == ("drop_duplicates" if risk.kind == "duplicate_rows" else "drop_columns")
    named = [f"{leak['kinds'][0]}({', '.join(leak['columns'])})" for leak in true]
    return [
        finding(
            "risks",
            0.5,
            share * soft_f1(credit, len(claims), len(true)),
            versus([f"{risk.kind}({column or ''})" for risk, column in claims[:20]], named),
            f"Leaks in these data: {listing(named)}. {credit:g} of them were found, with {len(claims)} claims.{note}",
            true=len(true),
            given=len(claims),
        ),
        finding(
            "mitigations",
            0.05,
            share * (handled / max(len(true), 1) if true else float(not claims)),
            versus([risk.mitigation.name for risk in document.risks[:20]], len(true)),
            f"Leaks are mitigated by dropping their columns, or the duplicates.{note}",
            true=len(true),
            given=len(claims),
        ),
    ]


def _claims(risks: list[Risk]) -> list[tuple[Risk, str | None]]:
    """Return the claims of a risk: one per column; one if it has no columns."""
    return [(risk, column) for risk in risks for column in (risk.columns or (None,))]


def _matching(risk: Risk, column: str | None, true: list[dict[str, Any]]) -> int | None:
    for place, leak in enumerate(true):
        if column is not None and column in leak["columns"]:
            return place
        about_rows = "duplicate_rows" in leak["kinds"] or ("id_order" in leak["kinds"] and not leak["columns"])
        if about_rows and risk.kind in leak["kinds"]:
            return place
    return None
