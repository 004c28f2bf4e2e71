"""Exploration: column contents, relations with the target and between columns, differences in the test set, and the
value of changes before training.

Naive: no change. Strong: the best of no change, each kind of change that the facts call for, and all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mleredux_techniques._kit.data.columns import amounts
from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance, refusal
from mleredux_techniques._kit.data.skill import Judge
from mleredux_techniques._kit.data.splits import Pool, sampled
from mleredux_techniques._kit.judging.marks import EASY, Sheet, above, informed, listing, undecided
from mleredux_techniques._kit.judging.plans import by_split, loss
from mleredux_techniques._kit.judging.reference import Model
from mleredux_techniques._kit.judging.study import OnRows
from mleredux_techniques.eda import profile
from mleredux_techniques.eda.document import ACTIONS, EdaAnalysis

Changes = Sequence[Sequence[Any]]
"""Actions, each with its column, and with the sentinel or the center."""

NEAR = 0.03
ALIKE = (0.85, 0.9, 0.95)
FIRST = 200
PARTS = ("sentinel", "relation", "like", "drift")


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return the facts of each feature; `open` names those for which either answer is accepted.

    Raises:
        NotApplicable: There are no features.
    """
    if not dataset.features:
        raise refusal(dataset, "eda", "its tables have no features in common")
    judge = Judge(sampled(dataset))
    columns: dict[str, dict[str, Any]] = {}
    for name in dataset.features:
        values = dataset.train[name]
        kind = profile.type_of(values, dataset.kinds[name])
        distance, differs, unsure = profile.drift(dataset, name, kind)
        facts: dict[str, Any] = {"type": kind, "distinct": int(values.nunique()), "sentinel": [], "relation": []}
        open_ = {"drift": unsure}
        if kind == "number":
            facts["sentinel"], open_["sentinel"] = profile.sentinels(values.to_numpy(dtype=float))
        if kind != "constant":
            skill, forms, facts["center"] = profile.relation(judge, name)
            facts["relation"] = forms if skill > profile.TELLING else []
            rows = len(judge.y) if judge.groups is None else judge.groups.max() + 1
            open_["relation"] = abs(skill - profile.TELLING) < max(profile.OPEN, 2 / rows**0.5)
        facts |= {"like": [], "drift": distance if differs else None}
        columns[name] = {**facts, "open": [part for part, is_open in open_.items() if is_open]}
    _alike(dataset, columns)
    return {"columns": columns}


def _alike(dataset: Dataset, columns: dict[str, dict[str, Any]]) -> None:
    names = [name for name, facts in columns.items() if facts["type"] == "number"][:FIRST]
    ranked = dataset.train[names].rank()
    matrix = ranked.fillna(ranked.mean()).corr().abs().to_numpy()  # missing values get the mean rank
    low, bound, high = ALIKE
    for place, row in enumerate(matrix):
        others = {names[k]: value for k, value in enumerate(row) if k != place and value >= low}
        columns[names[place]]["like"] = [name for name, value in others.items() if value >= bound]
        if others and max(others.values()) < high:
            columns[names[place]]["open"].append("like")


def mark(sheet: Sheet, document: EdaAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with the tables."""
    true: dict[str, dict[str, Any]] = truth["columns"]
    stated = {item.column: item for item in document.columns}
    known = {name: [facts["type"], facts["distinct"]] for name, facts in true.items()}
    right = {name for name, item in stated.items() if known.get(name) == [item.type, item.distinct]}
    sheet.measured("columns", right, stated, known)
    for part in PARTS:
        closed = {name for name, facts in true.items() if part not in facts["open"]}
        are = {name: facts[part] for name, facts in true.items() if name in closed and facts[part]}
        claims = {name: claim for name, item in stated.items() if (claim := getattr(item, part)) not in (None, "none")}
        claims = {name: claim for name, claim in claims.items() if name in closed or name not in true}
        listed = listing(f"{name} ({_shown(value)})" for name, value in are.items()) + undecided(set(true) - closed)
        score = _credit({name: claim if name in right else "" for name, claim in claims.items()}, are, closed)
        texts = {name: "values" for name in closed if part == "relation" and true[name]["type"] != "number"}
        everywhere = [{**dict.fromkeys(closed, claim), **more} for claim in {*claims.values()} for more in ({}, texts)]
        constants = [_credit(same, are, closed) for same in everywhere]
        easily = max(constants, default=0.0)
        decides = bool(are or claims) and (score < EASY or score > easily or easily < EASY)
        score, counts = above(score, constants), (len(are), len(claims))
        sheet.mark(part, score, claims, are, of=counts, listed=listed, decides=decides)


def _credit(claims: dict[str, Any], are: dict[str, Any], closed: set[str]) -> float:
    worths = [_worth(claims[name], are[name]) if claims[name] != "" else 0.0 for name in set(claims) & set(are)]
    false, others = len(claims.keys() - are), len(closed - set(are)) + 1
    return informed(sum(worths) - worths.count(0), false, len(are), others)


def _worth(claim: Any, true: Any) -> float:
    if isinstance(true, float):
        return 1.0 if abs(claim - true) <= NEAR else 0.5
    return float(claim in true)


def _shown(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else " or ".join(str(part) for part in value)


class ChangesBefore(OnRows[Changes]):
    """Changes before training."""

    def naive(self, instance: Instance) -> Changes:
        return []

    def panel(self, instance: Instance) -> Sequence[Changes]:
        every = _called_for(instance.truth)
        kinds = dict.fromkeys(kind for kind, *_ in every)
        panel = [[], *([change for change in every if change[0] == kind] for kind in kinds)]
        return [*panel, every] if len(kinds) > 1 else panel

    def quick(self, instance: Instance) -> Sequence[Changes]:
        return [_called_for(truth(instance.dataset))]

    def given(self, document: EdaAnalysis, instance: Instance) -> Changes:
        values = {"mark_missing": "sentinel", "add_distance": "center", "to_number": "drift"}
        return [(kind, item.column, getattr(item, values[kind])) for item in document.columns for kind in item.actions]

    def told(self, option: Changes, instance: Instance) -> str:
        kinds = [kind for kind, *_ in option]
        return ", ".join(f"{kind} {kinds.count(kind)} times" for kind in ACTIONS if kind in kinds) or "no change"

    def on(self, data: Pool, option: Changes, instance: Instance, models: Sequence[Model]) -> Array:
        changed = _changed(data, option)
        key = f"{models} after {sorted(map(list, option))}"
        return by_split(data, key, lambda split: loss(instance, changed, split, {}, models))


STUDY = ChangesBefore()


def reference(instance: Instance) -> dict[str, Any]:
    """Return the strong choice, for the truth."""
    return {"strong": STUDY.best(instance, STUDY.panel(instance))}


def _called_for(truth: dict[str, Any]) -> Changes:
    """Return all changes that the facts call for."""
    changes: list[Sequence[Any]] = []
    for name, facts in truth["columns"].items():
        changes += [("mark_missing", name, value) for value in facts["sentinel"][:1]]
        changes += [("to_number", name, None)] if facts["type"] == "number_as_text" else []
        bent = facts["relation"] == ["nonmonotone"] and "relation" not in facts["open"]
        changes += [("add_distance", name, facts["center"])] if bent else []
    return changes


def _changed(data: Pool, changes: Changes) -> Pool:
    """Apply the changes in the order of `ACTIONS`; those that do not fit a column's kind have no effect."""
    frame, kinds, features = data.frame.copy(), dict(data.dataset.kinds), list(data.dataset.features)
    numbers, texts = data.dataset.of_kind("number"), data.dataset.of_kind("text")
    for kind, name, value in sorted(changes, key=lambda change: ACTIONS.index(change[0])):
        if kind == "to_number" and name in texts and (numbers_of := amounts(frame.loc[:, name], 0)) is not None:
            frame[name], kinds[name] = numbers_of, "number"
        elif kind == "mark_missing" and name in numbers:
            frame[name] = frame[name].astype(float).mask(frame[name] == value)
        elif kind == "add_distance" and name in numbers:
            frame[f"distance of {name}"], kinds[f"distance of {name}"] = (frame[name] - value).abs(), "number"
            features.append(f"distance of {name}")
    return replace(data, frame=frame, dataset=replace(data.dataset, kinds=kinds, features=tuple(features)))


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    strong = instance.truth["strong"]
    values = {name: value for kind, name, value in strong if kind == "add_distance"}
    columns = []
    for name, facts in instance.truth["columns"].items():
        entry = {"column": name, **{key: facts[key] for key in ("type", "distinct", "drift")}}
        entry |= {"relation": (facts["relation"] or ["none"])[-1], "sentinel": next(iter(facts["sentinel"]), None)}
        actions = [kind for kind, column, _value in strong if column == name]
        entry |= {"like": next(iter(facts["like"]), None), "actions": actions, "center": values.get(name)}
        columns.append(entry)
    return {"columns": columns}
