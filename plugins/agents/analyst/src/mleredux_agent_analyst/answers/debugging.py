"""Faults that are visible in a single line, with replacements; faults that show only at run time are missed."""

from __future__ import annotations

import re
from typing import Any

from mleredux_agent_analyst.tables import Tables

_SMALLER_IS_BETTER = ("-np.log(", "np.abs(", "np.sqrt(")


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document: lines that match a rule of thumb, and the script with these lines replaced."""
    text = (tables.folder / "train.py").read_text(encoding="utf-8")
    lines, faults = text.split("\n"), []
    for place, line in enumerate(lines):
        for kind, pattern, replacement in _rules(text):
            if re.search(pattern, line):
                faults.append({"kind": kind, "line": place + 1})
                lines[place] = re.sub(pattern, replacement, line)
                break
    return {"faults": faults[:10], "script": "\n".join(lines)}


def _rules(text: str) -> list[tuple[str, str, str]]:
    """Return the rules: kinds, patterns and replacements."""
    mask = re.search(r"(\w+) = \w+ == \w+\n", text)
    outside = f"~{mask[1]}" if mask else ":"
    best, worst = ("min", "max") if any(mark in text for mark in _SMALLER_IS_BETTER) else ("max", "min")
    every = "range(1, FOLDS + 1)" if "% FOLDS + 1" in text else "range(FOLDS)"
    return [
        ("wrong_split", r"(?<=^        model\.)fit\(X(\[\w+\])?, y(\[\w+\])?\)", f"fit(X[{outside}], y[{outside}])"),
        ("fold_off_by_one", r"range\(1, FOLDS\)", every),
        ("fold_off_by_one", r"(?<=\))\[:-1\](?=:)", ""),
        ("metric_direction", rf"= {worst}\(", f"= {best}("),
        ("misaligned_columns", r"\[::-1\]", ""),
    ]
