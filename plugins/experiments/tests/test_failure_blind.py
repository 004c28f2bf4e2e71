"""Precision and recall on runs in the words of many tools, which the rules had not seen when these were labelled."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mleredux_experiments.sources import read_run

sys.path.insert(0, str(Path(__file__).parent / "failures"))
from blind import FIRST, SECOND, THIRD, Run


def _write(add_run: Callable[..., Path], number: int, case: Run) -> Path:
    log, facts = case[1], dict(case[2]) if len(case) > 2 else {}
    steps, message = facts.pop("steps", []), facts.pop("message", None)
    path = add_run("task", "agent", number, **{"state": "failed", "cause": "agent_crashed", **facts})
    (path / "logs").mkdir()
    (path / "logs" / "agent.log").write_text(f"start\n{log}\n")
    if message is not None:
        report = json.loads((path / "report.json").read_text())
        (path / "report.json").write_text(json.dumps({**report, "submission_exists": True, "message": message}))
    if steps:
        told: list[dict[str, Any]] = [
            {
                "source": "agent",
                "tool_calls": [{"arguments": {"code": code}}],
                "observation": {"results": [{"content": output}]},
            }
            for code, output in steps
        ]
        (path / "rollout.json").write_text(json.dumps({"steps": told}))
    return path


@pytest.mark.parametrize("cases", [FIRST, SECOND, THIRD], ids=["first", "second", "third"])
def test_precision_and_recall(cases: tuple[Run, ...], add_run: Callable[..., Path]) -> None:
    told, true, primary = set(), set(), []
    for number, case in enumerate(cases):
        row = read_run(_write(add_run, number, case), rollouts=True)
        found = row.findings or ()
        told |= {(number, one.category) for one in found} | {
            (number, f"{one.category}:{one.kind}") for one in found if one.category == "invalid-submission"
        }
        labels = (
            {label.partition(":")[0] for label in case[0]} | set(case[0]) | (set() if row.made else {"no-submission"})
        )
        true |= {(number, label) for label in labels}
        first = next((label.partition(":")[0] for label in case[0]), None if row.made else "no-submission")
        primary.append((found[0].category if found else None) == first)
    wrong, missed = sorted(told - true), sorted(true - told)
    assert len(told & true) >= 0.95 * len(told), [(one, cases[one[0]][1][-200:]) for one in wrong]
    assert len(told & true) >= 0.9 * len(true), [(one, cases[one[0]][1][-200:]) for one in missed]
    named = {pair for pair in true if pair[1] != "no-submission"}
    assert len(told & named) >= 0.9 * len(named), [(one, cases[one[0]][1][-200:]) for one in sorted(named - told)]
    assert sum(primary) >= 0.9 * len(primary)
