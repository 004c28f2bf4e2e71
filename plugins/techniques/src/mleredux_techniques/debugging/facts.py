"""The planted faults, and their comparison with a diagnosis."""

from __future__ import annotations

from typing import Any

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.judging.marks import component, facts_of, soft_f1, versus
from mleredux_techniques._kit.judging.results import Facts
from mleredux_techniques.debugging.document import DebuggingAnalysis
from mleredux_techniques.debugging.scripts import SCRIPT, Script, script

HALF = 0.4
"""Credit for the right kind with a wrong line, or the right line with a wrong kind."""


def script_of(dataset: Dataset) -> Script:
    """Return the script without faults."""
    return script(dataset, dataset.planted["script"]["style"])


def faults_of(dataset: Dataset) -> dict[int, tuple[str, str]]:
    """Return the planted faults, line number → kind and wrong line."""
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


def assess(document: DebuggingAnalysis, truth: dict[str, Any]) -> Facts:
    """Score the diagnosis."""
    known = truth["faults"]
    credits = 0.0
    for fault in known:
        credits += max((_credit(fault, claim.kind, claim.line) for claim in document.faults), default=0.0)
    lines = [f"{one['line']} ({one['kind']}): `{one['right'].strip()}`" for one in known]
    told = f"Lines with faults, repaired: {'; '.join(lines)}."
    given = [{"kind": claim.kind, "line": claim.line} for claim in document.faults]
    right = [{"kind": one["kind"], "line": one["line"]} for one in known]
    score = soft_f1(credits, len(given), len(known))
    return facts_of([component("faults", 1.0, score, versus(given, right), told, decides=True)])


def _credit(fault: dict[str, Any], kind: str, line: int) -> float:
    place, same = abs(line - fault["line"]) <= 1, kind == fault["kind"]
    return 1.0 if place and same else HALF if same or line == fault["line"] else 0.0
