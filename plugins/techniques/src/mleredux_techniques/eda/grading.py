"""Exploration: column contents, relations with the target and between columns, differences in the test set, and the
value of changes before training.

Naive: no change. Strong: the best of no change, each kind of change that the facts call for, and all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.columns import amounts
from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance, refusal
from mleredux_techniques._kit.data.skill import Judge
from mleredux_techniques._kit.data.splits import Pool, sampled
from mleredux_techniques._kit.judging.marks import Sheet, informed, listing, shortened
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
        told: dict[str, Any] = {"type": kind, "distinct": int(values.nunique()), "sentinel": [], "relation": []}
        open_ = {"drift": unsure}
        if kind == "number":
            told["sentinel"], open_["sentinel"] = profile.sentinels(values.to_numpy(dtype=float))
        if kind != "constant":
            skill, forms, told["center"] = profile.relation(judge, name)
            told["relation"] = forms if skill > profile.TELLING else []
            rows = len(judge.y) if judge.groups is None else judge.groups.max() + 1
            open_["relation"] = abs(skill - profile.TELLING) < max(profile.OPEN, 2 / rows**0.5)
        told |= {"like": [], "drift": distance if differs else None}
        columns[name] = {**told, "open": [part for part, is_open in open_.items() if is_open]}
    _alike(dataset, columns)
    return {"columns": columns}


def _alike(dataset: Dataset, columns: dict[str, dict[str, Any]]) -> None:
    names = [name for name, told in columns.items() if told["type"] == "number"][:FIRST]
    found = profile.correlations(dataset, names) if len(names) > 1 else np.zeros((0, 0))
    low, bound, high = ALIKE
    for place, row in enumerate(found):
        others = {names[k]: value for k, value in enumerate(row) if k != place and value >= low}
        columns[names[place]]["like"] = [name for name, value in others.items() if value >= bound]
        if others and max(others.values()) < high:
            columns[names[place]]["open"].append("like")


def mark(sheet: Sheet, document: EdaAnalysis, truth: dict[str, Any]) -> None:
    """Compare the document with the tables."""
    true: dict[str, dict[str, Any]] = truth["columns"]
    given = {one.column: one for one in document.columns}
    known = {name: [told["type"], told["distinct"]] for name, told in true.items()}
    right = {name for name, one in given.items() if known.get(name) == [one.type, one.distinct]}
    sheet.measured("columns", right, given, known)
    for part in PARTS:
        closed = {name for name, told in true.items() if part not in told["open"]}
        are = {name: told[part] for name, told in true.items() if name in closed and told[part]}
        claims = {name: claim for name, one in given.items() if (claim := getattr(one, part)) not in (None, "none")}
        claims = {name: claim for name, claim in claims.items() if name in closed or name not in true}
        credit = sum(_worth(claims[name], are[name]) for name in right & set(claims) & set(are))
        false, hits = set(claims) - set(are), len(set(claims) & set(are))
        listed = listing(f"{name} ({_told(value)})" for name, value in are.items())
        score = informed(credit, len(false) + hits - credit, len(are), len(closed - set(are)) + hits)
        sheet.mark(part, score, shortened(claims), shortened(are), of=(len(are), len(claims)), listed=listed)


def _worth(claim: Any, true: Any) -> float:
    if isinstance(true, float):
        return 1.0 if abs(claim - true) <= NEAR else 0.5
    return float(claim in true)


def _told(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else " or ".join(str(one) for one in value)


class ChangesBefore(OnRows[Changes]):
    """Changes before training."""

    def naive(self, instance: Instance) -> Changes:
        return []

    def panel(self, instance: Instance) -> Sequence[Changes]:
        every = _called_for(instance.truth)
        kinds = dict.fromkeys(kind for kind, *_ in every)
        panel = [[], *([one for one in every if one[0] == kind] for kind in kinds)]
        return [*panel, every] if len(kinds) > 1 else panel

    def quick(self, instance: Instance) -> Sequence[Changes]:
        return [_called_for(truth(instance.dataset))]

    def given(self, document: EdaAnalysis, instance: Instance) -> Changes:
        values = {"mark_missing": "sentinel", "add_distance": "center", "to_number": "drift"}
        return [(kind, one.column, getattr(one, values[kind])) for one in document.columns for kind in one.actions]

    def told(self, option: Changes, instance: Instance) -> str:
        kinds = [kind for kind, *_ in option]
        return ", ".join(f"{kind} {kinds.count(kind)} times" for kind in ACTIONS if kind in kinds) or "no change"

    def on(self, one: Pool, option: Changes, instance: Instance, models: Sequence[Model]) -> Array:
        made = _changed(one, option)
        key = f"{models} after {sorted(map(list, option))}"
        return by_split(one, key, lambda split: loss(instance, made, split, {}, models))


STUDY = ChangesBefore()


def reference(instance: Instance) -> dict[str, Any]:
    """Return the strong choice, for the truth."""
    return {"strong": STUDY.best(instance, STUDY.panel(instance))}


def _called_for(truth: dict[str, Any]) -> Changes:
    """Return all changes that the facts call for."""
    found: list[Sequence[Any]] = []
    for name, told in truth["columns"].items():
        found += [("mark_missing", name, value) for value in told["sentinel"][:1]]
        found += [("to_number", name, None)] if told["type"] == "number_as_text" else []
        bent = told["relation"] == ["nonmonotone"] and "relation" not in told["open"]
        found += [("add_distance", name, told["center"])] if bent else []
    return found


def _changed(one: Pool, changes: Changes) -> Pool:
    """Apply the changes in the order of `ACTIONS`; those that do not fit a column's kind have no effect."""
    frame, kinds, features = one.frame.copy(), dict(one.dataset.kinds), list(one.dataset.features)
    numbers, texts = one.dataset.of_kind("number"), one.dataset.of_kind("text")
    for kind, name, value in sorted(changes, key=lambda change: ACTIONS.index(change[0])):
        if kind == "to_number" and name in texts and (found := amounts(frame.loc[:, name], 0)) is not None:
            frame[name], kinds[name] = found, "number"
        elif kind == "mark_missing" and name in numbers:
            frame[name] = frame[name].astype(float).mask(frame[name] == value)
        elif kind == "add_distance" and name in numbers:
            frame[f"distance of {name}"], kinds[f"distance of {name}"] = (frame[name] - value).abs(), "number"
            features.append(f"distance of {name}")
    return replace(one, frame=frame, dataset=replace(one.dataset, kinds=kinds, features=tuple(features)))


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    strong = instance.truth["strong"]
    values = {name: value for kind, name, value in strong if kind == "add_distance"}
    columns = []
    for name, told in instance.truth["columns"].items():
        found = {"column": name, **{key: told[key] for key in ("type", "distinct", "drift")}}
        found |= {"relation": (told["relation"] or ["none"])[-1], "sentinel": next(iter(told["sentinel"]), None)}
        actions = [kind for kind, column, _value in strong if column == name]
        found |= {"like": next(iter(told["like"]), None), "actions": actions, "center": values.get(name)}
        columns.append(found)
    return {"columns": columns}
