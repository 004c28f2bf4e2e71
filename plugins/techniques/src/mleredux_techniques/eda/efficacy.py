"""Efficacy of changes before training: the competition's metric of the reference models with and without them.

Naive: no change. Strong: the best of no change, each kind of change that the facts call for, and all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mleredux_techniques._kit.data.dataset import Instance
from mleredux_techniques._kit.data.splits import Pool, pool
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference
from mleredux_techniques._kit.judging.plans import QUICK, QUICK_ROWS, best_of, by_split, choosing_pool, judged, loss
from mleredux_techniques._kit.judging.reference import MODELS, Model
from mleredux_techniques._kit.judging.results import Efficacy
from mleredux_techniques.eda import facts
from mleredux_techniques.eda.document import ACTIONS, EdaAnalysis
from mleredux_techniques.eda.profile import amounts

Change = Sequence[Any]
"""An action, its column, and the sentinel or the center."""


def reference(instance: Instance) -> dict[str, Any]:
    """Return the strong choice."""
    every = called_for(instance.truth)
    kinds = dict.fromkeys(kind for kind, *_ in every)
    panel: dict[str, list[Change]] = {"no change": []}
    panel |= {kind: [one for one in every if one[0] == kind] for kind in kinds}
    panel |= {"all": every} if len(kinds) > 1 else {}
    one = choosing_pool(instance)
    return {"strong": panel[best_of(panel, lambda name: _losses(instance, one, panel[name]), one.overlap)]}


def measure(document: EdaAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommended actions."""
    one = pool(instance.dataset)
    values = {"mark_missing": "sentinel", "add_distance": "center", "to_number": "drift"}
    given = [(kind, told.column, getattr(told, values[kind])) for told in document.columns for kind in told.actions]
    panel: tuple[Sequence[Change], ...] = ([], instance.truth["strong"], given)
    return judged(instance, one, *(Choice(_losses(instance, one, chosen), _told(chosen)) for chosen in panel))


def gap(instance: Instance) -> Difference:
    """Return what all changes that the facts call for gain over none, on few splits."""
    one = pool(instance.dataset, max_rows=QUICK_ROWS, repeats=1)
    every = called_for(facts.truth(instance.dataset))
    naive, strong = (_losses(instance, one, changes, QUICK) for changes in ([], every))
    return difference(naive, strong, one.overlap)


def called_for(truth: dict[str, Any]) -> list[Change]:
    """Return all changes that the facts call for."""
    found: list[Change] = []
    for name, told in truth["columns"].items():
        found += [("mark_missing", name, value) for value in told["sentinel"][:1]]
        found += [("to_number", name, None)] if told["type"] == "number_as_text" else []
        bent = told["relation"] == ["nonmonotone"] and "relation" not in told["open"]
        found += [("add_distance", name, told["center"])] if bent else []
    return found


def _told(changes: Sequence[Change]) -> str:
    kinds = [kind for kind, *_ in changes]
    return ", ".join(f"{kind} {kinds.count(kind)} times" for kind in ACTIONS if kind in kinds) or "no change"


def _losses(instance: Instance, one: Pool, changes: Sequence[Change], models: Sequence[Model] = MODELS) -> Any:
    made = _changed(one, changes)
    key = f"{models} after {sorted(map(list, changes))}"
    return by_split(one, key, lambda split: loss(instance, made, split, {}, models))


def _changed(one: Pool, changes: Sequence[Change]) -> Pool:
    """Return the rows after the changes: first missing values, then texts, then distances; others have no effect."""
    frame, kinds, features = one.frame.copy(), dict(one.dataset.kinds), list(one.dataset.features)
    numbers, texts = one.dataset.of_kind("number"), one.dataset.of_kind("text")
    for kind, name, value in sorted(changes, key=lambda change: ACTIONS.index(change[0])):
        if kind == "to_number" and name in texts:
            frame[name], kinds[name] = amounts(frame.loc[:, name]), "number"
        elif kind == "mark_missing" and name in numbers:
            frame[name] = frame[name].astype(float).mask(frame[name] == value)
        elif kind == "add_distance" and name in numbers:
            frame[f"distance of {name}"], kinds[f"distance of {name}"] = (frame[name] - value).abs(), "number"
            features.append(f"distance of {name}")
    return replace(one, frame=frame, dataset=replace(one.dataset, kinds=kinds, features=tuple(features)))
