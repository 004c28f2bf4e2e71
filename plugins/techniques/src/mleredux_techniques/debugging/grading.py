"""Debugging: the planted faults, their diagnosis, and the remaining errors of the repaired script.

For each fault, preparation measures the scale from the script with this fault alone (0) to the script without faults
(1); the efficacy is the mean over faults. Naive: only the crash is repaired. Strong: all faults are repaired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from mleredux.errors import NotApplicable
from mleredux.models.formats import counted

from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance, remembered
from mleredux_techniques._kit.judging.comparison import Choice, Difference, difference, judge
from mleredux_techniques._kit.judging.marks import Efficacy, Figure, Sheet, soft_f1
from mleredux_techniques._kit.judging.scorer import scorer
from mleredux_techniques.debugging.document import DebuggingAnalysis
from mleredux_techniques.debugging.execution import EXCHANGED, OVERLAP, losses
from mleredux_techniques.debugging.scripts import SCRIPT, Script, script

MOST_CHANGED = 20
_MEASURE = "remaining harm to the predictions ({metric}) and to the validation score, mean over the faults"
HALF = 0.4
"""Credit for a correct kind with a wrong line, or a correct line with a wrong kind."""


def script_of(dataset: Dataset) -> Script:
    """Return the script without faults.

    Raises:
        NotApplicable: The table is planted with something else, such as a synthetic task's.
    """
    if "script" not in dataset.planted:
        raise NotApplicable(f"{dataset.task} has no script.", hint="Choose a competition whose data is not planted.")
    return script(dataset, dataset.planted["script"]["style"])


def faults_of(dataset: Dataset) -> dict[int, tuple[str, str]]:
    """Return the planted faults: line number → kind and wrong line."""
    return {int(line): (kind, wrong) for line, kind, wrong in dataset.planted["script"]["faults"]}


def files(dataset: Dataset) -> dict[str, str]:
    """Return the script with its faults."""
    return {SCRIPT: script_of(dataset).text({line: wrong for line, (_kind, wrong) in faults_of(dataset).items()})}


def truth(dataset: Dataset) -> dict[str, Any]:
    """Return the faults and both scripts."""
    sound = script_of(dataset).text()
    lines = sound.split("\n")
    return {
        "faults": [
            {"kind": kind, "line": line, "wrong": wrong, "right": lines[line - 1]}
            for line, (kind, wrong) in sorted(faults_of(dataset).items())
        ],
        "script": files(dataset)[SCRIPT],
        "repaired": sound,
    }


def mark(sheet: Sheet, document: DebuggingAnalysis, truth: dict[str, Any]) -> None:
    """Score the diagnosis."""
    known = truth["faults"]
    credits = [max((_credit(fault, item.kind, item.line) for item in document.faults), default=0.0) for fault in known]
    lines = "; ".join(f"{item['line']} ({item['kind']}): `{item['right'].strip()}`" for item in known)
    claims = [{"kind": claim.kind, "line": claim.line} for claim in document.faults]
    right = [{"kind": item["kind"], "line": item["line"]} for item in known]
    sheet.mark("faults", soft_f1(sum(credits), len(claims), len(known)), claims, right, lines=lines)


def _credit(fault: dict[str, Any], kind: str, line: int) -> float:
    place, same = abs(line - fault["line"]) <= 1, kind == fault["kind"]
    return 1.0 if place and same else HALF if same or line == fault["line"] else 0.0


def measure(document: DebuggingAnalysis, instance: Instance) -> Efficacy:
    """Execute the repaired script on variations of the tables."""
    known = instance.truth["losses"]
    changed = lines_changed(instance.truth["script"], document.script)
    if changed > MOST_CHANGED:
        text = f"{changed} lines of the script were changed, more than {MOST_CHANGED}: that is not a repair."
        return Efficacy(0.0, 0.0, parts=[Figure("efficacy", changed, text, 0.0, 1.0)])
    losses_of = results(instance, [document.script])[0]
    results_on = counted(int(np.isfinite(losses_of).sum()), "variation")
    text = f"the submitted script, with {counted(changed, 'line')} changed and results on {results_on}"
    judged = replace(scorer(instance.dataset, instance.base), constant=1.0, perfect=0.0)
    efficacy = judge(
        Choice(_left(np.array(known["naive"]), known), "the script that no longer crashes, with all other faults"),
        Choice(_left(np.array(known["sound"]), known), "the script without faults"),
        Choice(_left(losses_of, known), text),
        overlap=OVERLAP,
        scorer=judged,
        measure=_MEASURE,
        distances=True,
    )
    return replace(efficacy, training=None)  # judged with labels of the private test set


def results(instance: Instance, scripts: Sequence[str]) -> list[Array]:
    """Return the losses of scripts by variation; new scripts are executed together."""
    known: dict[str, Array] = remembered(instance.dataset, "losses of scripts", dict)
    new = [text for text in dict.fromkeys(scripts) if text not in known]
    if new:
        known.update(zip(new, losses(instance, script_of(instance.dataset).metric, new), strict=True))
    return [known[text] for text in scripts]


def lines_changed(before: str, after: str) -> int:
    """Return the number of lines that were removed, added or replaced."""
    old, new = before.splitlines(), after.splitlines()
    same = sum(block.size for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    return max(len(old), len(new)) - same


def reference(instance: Instance) -> dict[str, Any]:
    """Return losses without faults, with each fault alone, with all but the crash, and whether the crash is fatal."""
    dataset = instance.dataset

    def run() -> dict[str, Any]:
        script, faults = script_of(dataset), faults_of(dataset)
        silent = {line: wrong for line, (kind, wrong) in faults.items() if kind != "crash"}
        crash = {line: wrong for line, (kind, wrong) in faults.items() if kind == "crash"}
        alone = [{line: wrong} for line, wrong in silent.items()]
        losses_of = losses(instance, script.metric, [script.text(chosen) for chosen in ({}, silent, crash, *alone)])
        known = {"sound": losses_of[0].tolist(), "naive": losses_of[1].tolist(), "alone": losses_of[3:].tolist()}
        return {"losses": {**known, "ends": not np.isfinite(losses_of[2]).any()}}

    return remembered(dataset, "debugging", run)


def gap(instance: Instance) -> Difference:
    """Return the gain from repairing the least harmful fault after all others; zero without a fatal crash."""
    known = reference(instance)["losses"]
    sound = np.array(known["sound"])
    if not known["ends"] or not all(np.isfinite(row).all() for row in (sound, known["naive"], *known["alone"])):
        return Difference(0.0, 1.0, len(EXCHANGED))
    return min((difference(alone, sound, OVERLAP) for alone in known["alone"]), key=lambda gap_of: gap_of.ratio)


def _left(losses_of: Array, known: dict[str, Any]) -> Array:
    """Return, for each variation, the remaining share of the faults' harm, averaged over faults."""
    sound, alone = np.array(known["sound"]), np.array(known["alone"])
    harm = np.maximum(alone - sound, 1e-9)
    return np.asarray(np.clip((np.minimum(losses_of, 1e9) - sound) / harm, 0, 1).mean(axis=0))


def solution(instance: Instance) -> dict[str, Any]:
    """Return the document with the best possible score."""
    faults = [{key: fault[key] for key in ("kind", "line")} for fault in instance.truth["faults"]]
    return {"faults": faults, "script": instance.truth["repaired"]}
