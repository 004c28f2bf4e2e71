"""Encodings: each feature's type and cardinality, and the value of encodings.

Naive: OrdinalEncoder on every text, numbers unchanged. Strong: the best of a few plans within the training table, each
based on the cardinality and the type of the texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mleredux_techniques._kit.data.columns import amounts, is_free_text
from mleredux_techniques._kit.data.dataset import Dataset, Instance, refusal
from mleredux_techniques._kit.data.skill import Judge
from mleredux_techniques._kit.data.splits import sampled
from mleredux_techniques._kit.data.structure import looks_like_time
from mleredux_techniques._kit.judging.marks import Sheet, close, listing
from mleredux_techniques._kit.judging.study import OfColumns, Treatments
from mleredux_techniques._kit.vocabulary import encoders
from mleredux_techniques.encoding.document import EncodedFeature, EncodingAnalysis
from mleredux_techniques.encoding.types import describe, levels_of

FEW = 15
"""Up to this number of distinct values counts as few."""
NEARLY_ALL_DIFFER = 0.9
_NONE, _DROP = encoders.NoEncoding(name="none"), encoders.DropFeature(name="drop")
_ONE_HOT, _CAPPED = (encoders.OneHotEncoder(name="OneHotEncoder", max_categories=most) for most in (None, 50))
_ORDINAL, _TARGET = encoders.OrdinalEncoder(name="OrdinalEncoder"), encoders.TargetEncoder(name="TargetEncoder")
_DATES = encoders.DatetimeEncoder(name="DatetimeEncoder")
_WORDS = encoders.TfidfVectorizer(name="TfidfVectorizer", max_features=300)

UNDECIDED, COUNTED = 0.25, ("binary", "constant")
"""Weight of a feature whose type the rows can't decide, or the number of its values decides."""
FALSE = 2.0
"""Weight of a purely numeric feature that is claimed to have another type."""


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return the accepted types (the canonical one first) and the cardinality of every feature of the training table.

    Raises:
        NotApplicable: All features are purely numeric, or the table has no features.
    """
    planted: dict[str, str] = {item["column"]: item["type"] for item in dataset.planted.get("categories", ())}
    facts: dict[str, dict[str, Any]] = {}
    judge = Judge(sampled(dataset))
    for name in dataset.features:
        described = {"types": [planted[name]]} if name in planted else describe(dataset, name, judge)
        facts[name] = {**described, "cardinality": int(dataset.train[name].nunique())}
    codes = {"numeric", "nominal", "ordinal"}  # integers with few values, which may be codes
    if all({"numeric", "constant"} & set(fact["types"]) and not codes <= set(fact["types"]) for fact in facts.values()):
        what = "all features of its tables are numbers" if facts else "its tables have no features"
        raise refusal(dataset, "encoding", what, planted=bool(facts))
    return {"features": facts}


def mark(sheet: Sheet, document: EncodingAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with the columns; a correct type earns credit only with a correct cardinality."""
    facts: dict[str, dict[str, Any]] = truth["features"]
    needed = {name for name, fact in facts.items() if "numeric" not in fact["types"]}
    named = {feature.column: feature for feature in document.features}
    exact = {name: close(item.cardinality, facts[name]["cardinality"]) for name, item in named.items() if name in facts}
    right = {name for name, credit in exact.items() if credit and _is_right(named[name], facts[name])}
    claimed, right = {name for name in named if name in needed or name not in right}, right & needed
    decided = {name for name in needed if "nominal" not in facts[name]["types"] or len(facts[name]["types"]) == 1}
    alike = Counter(facts[name]["types"][0] for name in needed)
    judged = {name for name in decided if facts[name]["types"][0] not in COUNTED}
    worth = {name: (1 if name in judged else UNDECIDED) / alike[facts[name]["types"][0]] for name in needed}

    hits = Counter(named[name].type for name in right & decided)
    misses = Counter(item.type for name, item in named.items() if name in facts and not _is_right(item, facts[name]))

    def credit(name: str) -> float:
        """Return the value of a correct claim, reduced by wrong claims of the same type."""
        false = FALSE * misses[named[name].type]
        return worth[name] * (hits[named[name].type] / (hits[named[name].type] + false) if false else 1.0)

    def sum_of(names: set[str]) -> float:
        """Sum the weights; certainly wrong claims count double, even if several types would be right."""
        wrong = {name: FALSE / alike.get(facts[name]["types"][0], 1) for name in names & (claimed - right) & needed}
        return sum({**worth, **wrong}.get(name, FALSE) for name in names)

    # an order round a circle that nothing refutes is right, but far-fetched
    kinds = {name: [kind for kind in facts[name]["types"] if kind != "cyclic"] for name in needed}
    types = listing(f"{name} {' or '.join(kinds[name] or facts[name]['types'])}" for name in sorted(needed))
    distinct = listing(f"{name} {facts[name]['cardinality']:,}" for name in sorted(needed))
    stated, known = {name: named[name] for name in sorted(claimed)}, {name: facts[name] for name in sorted(needed)}
    score = 2 * sum(map(credit, right)) / (sum_of(claimed) + sum(worth.values())) if claimed | needed else 1.0
    wrong = listing(sorted((needed | claimed) - right))
    shown = {n: item.type for n, item in stated.items()}, {n: f["types"] for n, f in known.items()}
    sheet.mark("types", score, *shown, decides=bool(decided | (claimed - needed)), listed=types, wrong=wrong)
    score = sum(exact[name] * credit(name) for name in right) / sum_of(needed | claimed) if claimed | needed else 1.0
    figures = {"listed": distinct, "right": sum(exact[name] for name in right), "all": len(needed)}
    counts = {n: item.cardinality for n, item in stated.items()}, {n: f["cardinality"] for n, f in known.items()}
    sheet.mark("cardinalities", score, *counts, **figures)


def _is_right(feature: EncodedFeature, fact: dict[str, Any]) -> bool:
    """Return whether a type is accepted; the executed order of words (alphabetical by default) is right unless the
    target contradicts it.
    """
    if feature.type == "ordinal" and isinstance(feature.encoding, encoders.OrdinalEncoder):
        levels = levels_of(fact)
        if levels is not None and levels.shape(feature.encoding.categories or sorted(levels.names)) == "rough":
            return False
    return feature.type in fact["types"]


class Encodings(OfColumns):
    """An encoding for each feature; unlisted numbers stay unchanged, unlisted texts are dropped."""

    kind = "encoding"

    def naive(self, instance: Instance) -> Treatments:
        return _texts(instance.dataset, _ORDINAL)

    def panel(self, instance: Instance) -> Sequence[Treatments]:
        dataset, panel = instance.dataset, [self.naive(instance)]
        if dataset.of_kind("text"):
            options = (_TARGET, _TARGET), (_CAPPED, _DROP), (_DROP, _DROP)
            panel += [_by_type(dataset, many, unique) for many, unique in options]
        codes: dict[str, encoders.Encoding] = dict.fromkeys(_few_whole_numbers(dataset), _ONE_HOT)
        return [*panel, *({**plan, **codes} for plan in panel if codes)]

    def quick(self, instance: Instance) -> Sequence[Treatments]:
        return [_by_type(instance.dataset, _TARGET, _TARGET)]

    def unlisted(self, instance: Instance) -> Treatments:
        return _texts(instance.dataset, _DROP)


def _texts(dataset: Dataset, how: encoders.Encoding) -> dict[str, encoders.Encoding]:
    return {name: how if dataset.kinds[name] == "text" else _NONE for name in dataset.features}


def _by_type(dataset: Dataset, many: encoders.Encoding, unique: encoders.Encoding) -> dict[str, encoders.Encoding]:
    """Return the plan that encodes texts by their type.

    Args:
        many: Encoding of texts with many repeating values.
        unique: Encoding of nearly unique texts that are not prose.
    """
    plan = _texts(dataset, many)
    for name in dataset.of_kind("text"):
        values = dataset.train[name].dropna()
        if is_free_text(values):
            plan[name] = _WORDS
        elif looks_like_time(values):
            plan[name] = _DATES
        elif amounts(values) is not None:
            plan[name] = _NONE
        elif values.nunique() <= FEW:
            plan[name] = _ONE_HOT
        elif values.nunique() > NEARLY_ALL_DIFFER * len(values):
            plan[name] = unique
    return plan


def _few_whole_numbers(dataset: Dataset) -> list[str]:
    """Return numbers that may be codes: integers with 3 to `FEW` values."""
    known = {name: dataset.train[name].dropna() for name in dataset.of_kind("number")}
    return [name for name, numbers in known.items() if 3 <= numbers.nunique() <= FEW and not (numbers % 1 != 0).any()]


STUDY = Encodings()


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    plan = STUDY.recommended(instance)
    facts = instance.truth["features"].items()
    listed = {name: fact for name, fact in facts if name in plan or "numeric" not in fact["types"]}
    figures = {name: {"type": fact["types"][0], "cardinality": fact["cardinality"]} for name, fact in listed.items()}
    features = [{"column": name, **figures[name], "encoding": plan.get(name, _DROP.model_dump())} for name in listed]
    return {"features": features}
