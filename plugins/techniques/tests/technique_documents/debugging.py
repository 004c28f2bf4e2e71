"""Answers to `debugging`."""

from __future__ import annotations

from typing import Any, get_args

from mleredux_techniques.debugging.document import FaultKind

EMPTY: dict[str, Any] = {"faults": [], "script": ""}


def crash_repaired(truth: dict[str, Any]) -> str:
    """The script of an agent that repairs what it sees end with an error."""
    lines = truth["script"].split("\n")
    for fault in truth["faults"]:
        if fault["kind"] == "crash":
            lines[fault["line"] - 1] = fault["right"]
    return "\n".join(lines)


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    kinds = get_args(FaultKind)
    listed = {
        "everything": [{"kind": one, "line": 10 + 6 * place} for place, one in enumerate(kinds)],
        "contradicting": [{"kind": "crash", "line": place} for place in range(1, 11)],
        "textbook": [{"kind": "wrong_split", "line": 40}, {"kind": "misaligned_rows", "line": 30}],
    }
    return {"faults": listed.get(kind, []), "script": "" if kind == "empty" else "import pandas as pd\n"}
