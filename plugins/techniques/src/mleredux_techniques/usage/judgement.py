"""The rules by which a run is scored for the techniques that it used, and the typed result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from mleredux_techniques.usage.code import BOTH, GROUPED, ORDERED, RANDOM, SCORERS, Found
from mleredux_techniques.usage.effects import USED, dependence

if TYPE_CHECKING:
    import pandas as pd

Effect = Literal["confirmed", "contradicted", "unknown"]
OPTIMISM = 0.5
"""A validation that is better than the test by more than this share of |gold − median| contradicts the folds."""
FILE = "technique_use.json"


class Use(BaseModel):
    """How one technique was used.

    Attributes:
        score: From 0 to 1; None where the data or the run gives nothing to judge.
        effect: What predictions or scores say of it.
        why: The line of code, the figure, or what is missing.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    technique: Literal["cv", "leakage", "encoding"]
    score: float | None
    effect: Effect
    why: tuple[str, ...]


class TechniqueUse(BaseModel):
    """The techniques that a run used.

    Attributes:
        reward: Mean of the scores that are not None; None if there is none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str
    task: str
    reward: float | None
    uses: tuple[Use, ...]


def judge(
    run: str, task: str, found: Found, truths: Mapping[str, Mapping[str, Any]], test: pd.DataFrame,
    predictions: pd.DataFrame, optimism: float | None,
) -> TechniqueUse:  # fmt: skip
    """Score a run.

    Args:
        found: What its programs do.
        truths: By technique the truth of its task on the same data; techniques that do not apply are absent.
        test: The test table.
        predictions: The submission's target columns, rows as in `test`.
        optimism: How much better the agent's validation of the submitted version was than the test, in |gold − median|;
            None where it is not known.
    """
    uses = []
    if "leakage" in truths:
        uses.append(_leakage(truths["leakage"], test, predictions))
    leaked = any(use.score == 0 for use in uses)
    if "cv" in truths:
        uses.append(_folds(truths["cv"], found, None if leaked else optimism))
    if "encoding" in truths:
        uses.append(_encoding(truths["encoding"], found, test, predictions, bool(truths["encoding"].get("planted"))))
    scores = [use.score for use in uses if use.score is not None]
    reward = round(sum(scores) / len(scores), 6) if scores else None
    return TechniqueUse(run=run, task=task, reward=reward, uses=tuple(uses))


def _folds(truth: Mapping[str, Any], found: Found, optimism: float | None) -> Use:
    """1 if a validation fits how the test was split off and the scores do not contradict it, else 0."""
    groups = [{key["column"], *filter(None, [key["second"]])} for key in (truth["groups"] or {}).get("keys", ())]
    times = set(truth["times"])

    def fits(kind: str, columns: frozenset[str]) -> bool:
        by_group = kind not in ORDERED | RANDOM | {"train_test_split"} or "unique" in columns
        grouped = any(names <= columns for names in groups) and by_group
        ordered = kind in ORDERED | BOTH and bool(times & (found.sorted_by | columns))
        if groups and times:
            return grouped or ordered  # one of both may be all that the agent could keep
        return grouped if groups else ordered if times else kind in RANDOM | SCORERS | GROUPED

    fitting = [one for one in found.folds if fits(one.kind, one.columns)]
    if not fitting:
        wanted = "groups" if groups else "time" if times else "rows at random"
        seen = ", ".join(f"{one.kind} ({one.where})" for one in found.folds[:3]) or "no validation"
        return Use(
            technique="cv", score=0.0, effect="unknown", why=(f"The test was split by {wanted}; found: {seen}.",)
        )
    told = f"{fitting[0].kind} fits ({fitting[0].where})."
    if optimism is None:
        return Use(technique="cv", score=1.0, effect="unknown", why=(told,))
    figure = f"The agent's validation was {optimism:+.2f} |gold − median| better than the test."
    right = optimism <= OPTIMISM
    effect: Effect = "confirmed" if right else "contradicted"
    return Use(technique="cv", score=float(right), effect=effect, why=(told, figure))


def _leakage(truth: Mapping[str, Any], test: pd.DataFrame, predictions: pd.DataFrame) -> Use:
    """1 if predictions do not depend on any planted leak, whose values in the test are random; else 0."""
    columns = [name for leak in truth["leaks"] if leak.get("planted") for name in leak["columns"] if name in test]
    told = {name: dependence(test[name], predictions) for name in columns}
    known = {name: p for name, p in told.items() if p is not None}
    if not known:
        why = "No leak of columns was planted; of others, predictions can't tell."
        return Use(technique="leakage", score=None, effect="unknown", why=(why,))
    used = {name: p for name, p in known.items() if p < USED}
    if used:
        lines = tuple(f"Predictions depend on the leak {name} (p = {p:.1g})." for name, p in used.items())
        return Use(technique="leakage", score=0.0, effect="contradicted", why=lines)
    kept = ", ".join(f"{name} (p = {p:.2g})" for name, p in known.items())
    return Use(technique="leakage", score=1.0, effect="confirmed", why=(f"Predictions do not depend on {kept}.",))


def _encoding(
    truth: Mapping[str, Any], found: Found, test: pd.DataFrame, predictions: pd.DataFrame, planted: bool
) -> Use:
    """The share of nominal columns that the code encodes as names, and that planted ones' predictions depend on."""
    import pandas as pd

    nominal = [name for name, one in truth["features"].items() if one["types"] == ["nominal"] and name in test]
    if planted:
        nominal = [name for name in nominal if name in truth["planted"]]
    if not nominal:
        return Use(technique="encoding", score=None, effect="unknown", why=("No column holds names only.",))
    right, why, effects = 0, list[str](), set[str]()
    for name in nominal:
        general = found.general if not pd.api.types.is_numeric_dtype(test[name]) else None
        place = found.encoded.get(name, general)
        p = dependence(test[name], predictions) if planted else None
        if place is None:
            why.append(f"Nothing encodes {name} as names.")
        elif p is not None and p >= USED:
            effects.add("contradicted")
            why.append(f"{name} is encoded ({place}), but predictions do not depend on it (p = {p:.2g}).")
        else:
            right += 1
            effects.add("unknown" if p is None else "confirmed")
            why.append(f"{name} is encoded ({place}).")
    effect: Effect = (
        "contradicted" if "contradicted" in effects else "confirmed" if "confirmed" in effects else "unknown"
    )
    return Use(technique="encoding", score=right / len(nominal), effect=effect, why=tuple(why))
