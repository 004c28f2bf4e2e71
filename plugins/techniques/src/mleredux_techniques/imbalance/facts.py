"""Facts of `imbalance`: the class counts."""

from __future__ import annotations

from typing import Any

from mleredux.errors import NotApplicable

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.judging.marks import close, component, counted, facts_of, listing, same, shortened, versus
from mleredux_techniques._kit.judging.results import Facts
from mleredux_techniques.imbalance.document import SEVERITIES, ImbalanceAnalysis


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return the class counts of the training table.

    Raises:
        NotApplicable: The target is a number.
    """
    if dataset.problem == "regression":
        raise NotApplicable(
            f"imbalance does not apply to {dataset.task}: its target {dataset.target!r} is a number, not a class."
        )
    counts = {str(name): int(count) for name, count in dataset.train[dataset.target].value_counts().items()}
    if len(counts) < 2:
        raise NotApplicable(f"imbalance does not apply to {dataset.task}: its training table has only one class.")
    ratio = max(counts.values()) / min(counts.values())
    return {
        "target": dataset.target,
        "counts": counts,
        "ratio": ratio,
        "severity": next(word for bound, word in SEVERITIES if ratio < bound),
    }


def assess(document: ImbalanceAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with the counts."""
    counts: dict[str, int] = truth["counts"]
    given = {class_name(name): count for name, count in document.class_counts.items()}
    right = sum(close(given[name], count) for name, count in counts.items() if name in given)
    largest, smallest = max(counts.values()), min(counts.values())
    told = listing(f"{name} {count:,}" for name, count in counts.items())
    commonest, rarest = ([name for name, count in counts.items() if count == edge] for edge in (largest, smallest))
    named = class_name(document.majority_class), class_name(document.minority_class)
    ratio = truth["ratio"]
    shown = versus(shortened(given), shortened(counts))
    parts = [
        component(
            "class counts",
            0.45,
            right / max(len(counts), len(given)),
            shown,
            f"Rows by class: {told}. {right:g} of {len(counts)} were correct.",
        ),
        counted(
            "imbalance ratio",
            0.25,
            document.imbalance_ratio,
            ratio,
            f"The largest class has {ratio:.4g} times as many rows as the smallest.",
        ),
    ]
    for name, claim, edge, among, what in (
        ("majority class", named[0], largest, commonest, "most"),
        ("minority class", named[1], smallest, rarest, "least"),
    ):
        told = f"The {what} frequent class has {edge:,} rows: {listing(among)}."
        parts.append(component(name, 0.1, float(claim in among), versus(claim, among), told))
    severity, target = truth["severity"], truth["target"]
    told = f"The severity of a ratio of {ratio:.4g} is {severity}."
    parts.append(same("severity", 0.08, document.severity, severity, told))
    parts.append(same("target", 0.02, document.target, target, f"The column of classes is {target!r}."))
    return facts_of(parts)
