"""Efficacy of leakage mitigation: which columns, and rows on both sides, would be dropped.

Naive: everything is kept, 0. Strong: all leaks are dropped and nothing else, 1. In between, it is the share of leaks
dropped times the share of honest strength (how well columns predict the target) that is kept. It is deterministic.
"""

from __future__ import annotations

from mleredux_techniques._kit.data import association
from mleredux_techniques._kit.data.dataset import Instance
from mleredux_techniques._kit.judging.results import Efficacy, Figure
from mleredux_techniques.leakage.document import LeakageAnalysis

LEAST_STRENGTH = 0.05
"""Minimum strength of a column, so that dropping a column without predictive power is not free."""


def measure(document: LeakageAnalysis, instance: Instance) -> Efficacy:
    """Compare the dropped columns and rows with the existing leaks, planted or not."""
    dataset = instance.dataset
    strengths = association.strengths(dataset)
    leaks = instance.truth["leaks"]
    leaking = {column for leak in leaks for column in leak["columns"]}
    dropped = {column for risk in document.risks if risk.mitigation.name == "drop_columns" for column in risk.columns}
    acted: set[str] = {risk.kind for risk in document.risks if risk.mitigation.name != "none"}
    removed = [leak for leak in leaks if _removed(leak, dropped, acted)]
    worth = {name: max(strengths.get(name, 0.0), LEAST_STRENGTH) for name in dataset.features}
    honest = {name: value for name, value in worth.items() if name not in leaking}
    lost = sorted(dropped & set(honest))
    kept = 1 - sum(honest[name] for name in lost) / max(sum(honest.values()), LEAST_STRENGTH)
    share = len(removed) / len(leaks) if leaks else None
    names = ", ".join(repr(name) for name in lost[:10]) or "none"
    told = f"Honest columns dropped: {names}; {kept:.2f} of the honest strength is kept."
    figures = [
        Figure("leaks dropped", [len(removed), len(leaks)], "Share of the existing leaks that would be dropped."),
        Figure("honest strength kept", round(kept, 4), told),
    ]
    score: float | None
    if share is not None:
        score = round(share * kept, 4)
        sentence = f"{len(removed)} of {len(leaks)} leaks would be dropped, and {kept:.2f} of the honest strength kept."
    elif lost:
        score, sentence = 0.0, "There is no leak in this data, but honest columns would be dropped."
    else:
        score, sentence = None, "There is no leak in this data, and nothing would be dropped: only the facts count."
    head = Figure("efficacy", score, sentence, score=score, weight=1.0 if score is not None else 0.0)
    return Efficacy(
        score,
        None if score is None else 0.0,
        None if score is None else 0.0,
        None if score is None else 1.0,
        score,
        [head, *figures],
    )


def _removed(leak: dict[str, object], dropped: set[str], acted: set[str]) -> bool:
    columns, kinds = leak["columns"], leak["kinds"]
    assert isinstance(columns, list)
    assert isinstance(kinds, list)
    if "interaction" in kinds:  # one of the columns tells nothing alone
        return bool(set(columns) & dropped)
    if columns:
        return set(columns) <= dropped
    return bool(set(kinds) & acted)  # rows, not columns: duplicates, or their order
