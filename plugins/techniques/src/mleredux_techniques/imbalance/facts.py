"""Facts of `imbalance`: the class counts."""

from __future__ import annotations

from typing import Any

from mleredux.errors import NotApplicable

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.judging.marks import close, component, facts_of, listing, shortened, versus
from mleredux_techniques._kit.judging.results import Facts
from mleredux_techniques.imbalance.document import SEVERITIES, ImbalanceAnalysis

TOLERANCES = """\
- `class_counts` (weight 0.45): each true class counts, within 2 % (half within 10 %); classes that do not exist count
  against it
- `imbalance_ratio` (0.25): within 2 % (half within 10 %)
- `majority_class`, `minority_class` (0.1 each): any of those that tie; they must be in your `class_counts`
- `severity` (0.08) and `target` (0.02): exactly"""


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
    return facts_of(
        [
            component(
                "class counts",
                0.45,
                right / max(len(counts), len(given)),
                versus(shortened(given), shortened(counts)),
                f"Rows by class: {told}. {right:g} of {len(counts)} were correct.",
            ),
            component(
                "imbalance ratio",
                0.25,
                close(document.imbalance_ratio, truth["ratio"]),
                versus(document.imbalance_ratio, round(truth["ratio"], 4)),
                f"The largest class has {truth['ratio']:.4g} times as many rows as the smallest.",
            ),
            component(
                "majority class",
                0.1,
                float(counts.get(named[0]) == largest),
                versus(named[0], commonest),
                f"The most frequent class has {largest:,} rows: {listing(commonest)}.",
            ),
            component(
                "minority class",
                0.1,
                float(counts.get(named[1]) == smallest),
                versus(named[1], rarest),
                f"The least frequent class has {smallest:,} rows: {listing(rarest)}.",
            ),
            component(
                "severity",
                0.08,
                float(document.severity == truth["severity"]),
                versus(document.severity, truth["severity"]),
                f"The severity of a ratio of {truth['ratio']:.4g} is {truth['severity']}.",
            ),
            component(
                "target",
                0.02,
                float(document.target == truth["target"]),
                versus(document.target, truth["target"]),
                f"The column of classes is {truth['target']!r}.",
            ),
        ]
    )
