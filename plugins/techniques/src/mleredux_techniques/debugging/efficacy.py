"""Efficacy of repairs: the repaired script is executed, and what it gets wrong is compared with each single fault.

For each fault, the script without faults (1) and the one with this fault alone (0) are known from the preparation; the
efficacy is the mean over faults. Naive: repairing what makes the script crash. Strong: all faults are repaired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Instance
from mleredux_techniques._kit.data.memory import remembered
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference, judge
from mleredux_techniques._kit.judging.results import Efficacy, Figure
from mleredux_techniques._kit.judging.scorer import scorer
from mleredux_techniques.debugging.document import DebuggingAnalysis
from mleredux_techniques.debugging.execution import EXCHANGED, OVERLAP, losses
from mleredux_techniques.debugging.facts import faults_of, script_of

MOST_CHANGED = 20
_MEASURE = "harm that is left, of the predictions by {metric} and of the validation score, mean over the faults"


def measure(document: DebuggingAnalysis, instance: Instance) -> Efficacy:
    """Execute the repaired script on variations of the tables."""
    known = instance.truth["losses"]
    changed = lines_changed(instance.truth["script"], document.script)
    if changed > MOST_CHANGED:
        told = f"{changed} lines of the script were changed, more than {MOST_CHANGED}: that is not a repair."
        return Efficacy(0.0, 0.0, None, None, None, [Figure("efficacy", changed, told, 0.0, 1.0)])
    found = results(instance, [document.script])[0]
    told = f"the submitted script, with {changed} lines changed and results on {np.isfinite(found).sum()} variations"
    judged = replace(scorer(instance.dataset, instance.base), constant=1.0, perfect=0.0)
    made = judge(
        Choice(_left(np.array(known["naive"]), known), "the script that no longer crashes, with all other faults"),
        Choice(_left(np.array(known["sound"]), known), "the script without faults"),
        Choice(_left(found, known), told),
        overlap=OVERLAP,
        scorer=judged,
        measure=_MEASURE,
        distances=True,
    )
    return replace(made, training=None)  # judged by labels of the private test


def results(instance: Instance, scripts: Sequence[str]) -> list[np.ndarray[Any, Any]]:
    """Return the losses of scripts by variation; those that are not known yet are executed together."""
    known: dict[str, np.ndarray[Any, Any]] = remembered(instance.dataset, "losses of scripts", dict)
    new = [text for text in dict.fromkeys(scripts) if text not in known]
    if new:
        known.update(zip(new, losses(instance, script_of(instance.dataset).metric, new), strict=True))
    return [known[text] for text in scripts]


def lines_changed(before: str, after: str) -> int:
    """Return the number of lines that were removed, added or replaced."""
    one, other = before.splitlines(), after.splitlines()
    same = sum(block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks())
    return max(len(one), len(other)) - same


def reference(instance: Instance) -> dict[str, Any]:
    """Return the losses of the script without faults, each fault alone, all but the crash; whether this ends it."""
    dataset = instance.dataset

    def run() -> dict[str, Any]:
        made, faults = script_of(dataset), faults_of(dataset)
        silent = {line: wrong for line, (kind, wrong) in faults.items() if kind != "crash"}
        crash = {line: wrong for line, (kind, wrong) in faults.items() if kind == "crash"}
        alone = [{line: wrong} for line, wrong in silent.items()]
        found = losses(instance, made.metric, [made.text(one) for one in ({}, silent, crash, *alone)])
        told = {"sound": found[0].tolist(), "naive": found[1].tolist(), "alone": found[3:].tolist()}
        return {"losses": {**told, "ends": not np.isfinite(found[2]).any()}}

    result: dict[str, Any] = remembered(dataset, "debugging", run)
    return result


def gap(instance: Instance) -> Difference:
    """Return what repairing the least harmful fault gains, if all others are repaired; nothing without a crash."""
    known = reference(instance)["losses"]
    sound = np.array(known["sound"])
    if not known["ends"] or not all(np.isfinite(row).all() for row in (sound, known["naive"], *known["alone"])):
        return Difference(0.0, 1.0, len(EXCHANGED))
    return min((difference(alone, sound, OVERLAP) for alone in known["alone"]), key=lambda one: one.ratio)


def _left(found: np.ndarray[Any, Any], known: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Return the mean over faults of the share of their harm that is left, by variation."""
    sound, alone = np.array(known["sound"]), np.array(known["alone"])
    harm = np.maximum(alone - sound, 1e-9)
    return np.asarray(np.clip((np.minimum(found, 1e9) - sound) / harm, 0, 1).mean(axis=0))
