"""Facts of `encoding`: each feature's type and cardinality."""

from __future__ import annotations

from typing import Any

from mleredux.errors import NotApplicable

from mleredux_techniques._kit.columns import is_free_text
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.marks import close, component, facts_of, listing, soft_f1, versus
from mleredux_techniques._kit.results import Facts
from mleredux_techniques._kit.structure import looks_like_time
from mleredux_techniques.encoding.document import EncodingAnalysis

SCALES: tuple[tuple[str, ...], ...] = (
    ("very low", "low", "medium", "high", "very high"),
    ("small", "medium", "large"),
    ("bad", "poor", "fair", "average", "good", "very good", "excellent"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("beginner", "intermediate", "advanced", "expert"),
)
CODES = 20
"""Integers with at most this many values may be categories."""
UNIQUE = 0.9

TOLERANCES = """\
- `type` (weight 0.5): F1 over the features that are not purely numeric. A type is right by these rules, of the values
  in the training table: one value or none: constant; dates: datetime; two values: binary (true and false, 0 and 1, any
  two); texts of five words or more that mostly differ: text; other texts of which nine in ten differ: identifier or
  text; a scale of words with an order (low, medium, high), or the first letters or numbers of one: ordinal; other
  texts: nominal; whole numbers with at most 20 values: numeric, ordinal or nominal, all correct, need not be listed;
  other numbers: numeric. For planted categories, the type that was planted is the truth
- `cardinality` of each (0.5): within 2 % (half within 10 %), for those with the right type"""


def truth(dataset: Dataset) -> dict[str, Any]:
    """Accepted types (the first is the canonical one) and cardinality of every feature of the training table.

    Raises:
        NotApplicable: All features are purely numeric, or there are none.
    """
    planted: dict[str, str] = {item["column"]: item["type"] for item in dataset.planted.get("categories", ())}
    facts: dict[str, dict[str, Any]] = {}
    for name in dataset.features:
        types = [planted[name]] if name in planted else accepted_types(dataset, name)
        facts[name] = {"types": types, "cardinality": int(dataset.train[name].nunique())}
    needed = [name for name, fact in facts.items() if not {"numeric", "constant"} & set(fact["types"])]
    if not needed:
        what = "all features of its tables are numbers" if facts else "its tables have no features"
        hint = f"Try encoding+planted-1@{dataset.task}." if facts else None
        raise NotApplicable(f"encoding does not apply to {dataset.task}: {what}.", hint=hint)
    return {"features": facts}


def accepted_types(dataset: Dataset, name: str) -> list[str]:
    """Return the correct types of a feature, by the rules in `TOLERANCES`."""
    values = dataset.train[name].dropna()
    distinct = values.nunique()
    if distinct <= 1:
        return ["constant"]
    if dataset.kinds[name] == "text" and looks_like_time(values):
        return ["datetime"]
    if distinct == 2:
        return ["binary"]
    if dataset.kinds[name] == "number":
        whole = bool((values % 1 == 0).all())
        return ["numeric", "ordinal", "nominal"] if whole and distinct <= CODES else ["numeric"]
    if is_free_text(values):
        return ["text"]
    if distinct >= UNIQUE * len(values):
        return ["identifier", "text"]
    words = {str(value).strip().lower() for value in values.unique()[:100]}
    if any(words <= set(scale) for scale in SCALES):
        return ["ordinal"]
    return ["nominal"]


def assess(document: EncodingAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with the columns."""
    facts: dict[str, dict[str, Any]] = truth["features"]
    needed = {name for name, fact in facts.items() if "numeric" not in fact["types"]}
    given = {feature.column: feature for feature in document.features}
    claimed = {
        name
        for name, feature in given.items()
        if name not in facts or name in needed or feature.type not in facts[name]["types"]
    }
    right = {name for name in needed & set(given) if given[name].type in facts[name]["types"]}
    types = {name: " or ".join(fact["types"]) for name, fact in facts.items()}
    distinct = listing(f"{name} {facts[name]['cardinality']:,}" for name in sorted(needed))
    counted = sum(close(given[name].cardinality, facts[name]["cardinality"]) for name in right)
    return facts_of(
        [
            component(
                "types",
                0.5,
                soft_f1(len(right), len(claimed), len(needed)),
                versus(
                    {name: given[name].type for name in sorted(claimed)[:50]},
                    {name: facts[name]["types"] for name in sorted(needed)[:50]},
                ),
                f"Features that are not purely numeric: {listing(f'{n} {types[n]}' for n in sorted(needed))}. "
                f"Wrong or missing: {listing(sorted((needed | claimed) - right))}.",
            ),
            component(
                "cardinalities",
                0.5,
                counted / len(needed | claimed),
                versus(
                    {name: given[name].cardinality for name in sorted(right)[:50]},
                    {name: facts[name]["cardinality"] for name in sorted(needed)[:50]},
                ),
                f"Distinct values: {distinct}. {counted:g} of {len(needed)} were correct.",
            ),
        ]
    )
