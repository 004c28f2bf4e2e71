"""Facts of `encoding`: each feature's type and cardinality."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mleredux.errors import NotApplicable

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.data.sample import sampled
from mleredux_techniques._kit.data.skill import Judge
from mleredux_techniques._kit.judging.marks import close, component, facts_of, listing, versus
from mleredux_techniques._kit.judging.results import Facts
from mleredux_techniques._kit.vocabulary.encoders import OrdinalEncoder
from mleredux_techniques.encoding.document import EncodedFeature, EncodingAnalysis
from mleredux_techniques.encoding.types import describe, levels_of

UNDECIDED = 0.25
"""Weight of a feature whose type these rows can't decide."""
FALSE = 2.0
"""Weight of a purely numeric feature that is claimed to be something else."""


def truth(dataset: Dataset) -> dict[str, Any]:
    """Accepted types (the first is the canonical one) and cardinality of every feature of the training table.

    Raises:
        NotApplicable: All features are purely numeric, or there are none.
    """
    planted: dict[str, str] = {item["column"]: item["type"] for item in dataset.planted.get("categories", ())}
    facts: dict[str, dict[str, Any]] = {}
    judge = Judge(sampled(dataset))
    for name in dataset.features:
        told = {"types": [planted[name]]} if name in planted else describe(dataset, name, judge)
        facts[name] = {**told, "cardinality": int(dataset.train[name].nunique())}
    codes = {"numeric", "nominal", "ordinal"}  # whole numbers of few values, which may be names
    if all({"numeric", "constant"} & set(fact["types"]) and not codes <= set(fact["types"]) for fact in facts.values()):
        what = "all features of its tables are numbers" if facts else "its tables have no features"
        hint = f"Try encoding+planted-1@{dataset.task}." if facts else None
        raise NotApplicable(f"encoding does not apply to {dataset.task}: {what}.", hint=hint)
    return {"features": facts}


def assess(document: EncodingAnalysis, truth: dict[str, Any]) -> Facts:
    """Compare the document with the columns; a type counts only with the number of values that was counted for it."""
    facts: dict[str, dict[str, Any]] = truth["features"]
    needed = {name for name, fact in facts.items() if "numeric" not in fact["types"]}
    given = {feature.column: feature for feature in document.features}
    exact = {name: close(one.cardinality, facts[name]["cardinality"]) for name, one in given.items() if name in facts}
    right = {name for name, credit in exact.items() if credit and _is_right(given[name], facts[name])}
    claimed, right = {name for name in given if name in needed or name not in right}, right & needed
    decided = {name for name in needed if not {"nominal", "ordinal"} <= set(facts[name]["types"])}
    alike = Counter(facts[name]["types"][0] for name in needed)
    worth = {name: (1 if name in decided else UNDECIDED) / alike[facts[name]["types"][0]] for name in needed}

    def sum_of(names: set[str]) -> float:
        """A claim that is certainly wrong weighs twice what a decided feature does, even if more than one is right."""
        wrong = {name: FALSE / alike.get(facts[name]["types"][0], 1) for name in names & (claimed - right) & needed}
        return sum({**worth, **wrong}.get(name, FALSE) for name in names)

    types = listing(f"{name} {' or '.join(facts[name]['types'])}" for name in sorted(needed))
    distinct = listing(f"{name} {facts[name]['cardinality']:,}" for name in sorted(needed))
    shown = sorted(claimed)[:50], sorted(needed)[:50]
    counted = sum(exact[name] * worth[name] for name in right)
    told = f"Features that are not purely numeric: {types}. Wrong or missing: "
    return facts_of(
        [
            component(
                "types",
                0.5,
                2 * sum_of(right) / (sum_of(claimed) + sum(worth.values())) if claimed | needed else 1.0,
                versus({n: given[n].type for n in shown[0]}, {n: facts[n]["types"] for n in shown[1]}),
                f"{told}{listing(sorted((needed | claimed) - right))}.",
                decides=bool(decided | (claimed - needed)),
            ),
            component(
                "cardinalities",
                0.5,
                counted / sum_of(needed | claimed) if claimed | needed else 1.0,
                versus({n: given[n].cardinality for n in shown[0]}, {n: facts[n]["cardinality"] for n in shown[1]}),
                f"Distinct values: {distinct}. {sum(exact[name] for name in right):g} of {len(needed)} were correct.",
            ),
        ]
    )


def _is_right(given: EncodedFeature, fact: dict[str, Any]) -> bool:
    """Whether a type is accepted; an order of words that is executed (alphabetical, if none is named) is right unless
    the target contradicts it.
    """
    if given.type == "ordinal" and isinstance(given.encoding, OrdinalEncoder):
        levels = levels_of(fact)
        if levels is not None and levels.shape(given.encoding.categories or sorted(levels.names)) == "rough":
            return False
    return given.type in fact["types"]
