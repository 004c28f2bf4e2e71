"""Precision and recall on runs in the words of many tools, which the rules had not seen when these were labelled."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mleredux_experiments.failures.errors import SIGNS, measurements
from mleredux_experiments.results.sources import read_run

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
        found = [one for one in row.findings or () if not one.overcome]
        told |= {(number, one.category) for one in found} | {
            (number, f"{one.category}:{one.kind}") for one in found if one.category == "invalid-submission"
        }
        named = case[0] or (() if row.submitted else ("code-error",))  # all that has no label and no submission raises
        labels = (
            {label.partition(":")[0] for label in named} | set(named) | (set() if row.submitted else {"no-submission"})
        )
        true |= {(number, label) for label in labels}
        first = next((label.partition(":")[0] for label in named), None)
        primary.append((found[0].category if found else None) == first)
    wrong, missed = sorted(told - true), sorted(true - told)
    assert len(told & true) >= 0.95 * len(told), [(one, cases[one[0]][1][-200:]) for one in wrong]
    assert len(told & true) >= 0.9 * len(true), [(one, cases[one[0]][1][-200:]) for one in missed]
    named = {pair for pair in true if pair[1] != "no-submission"}
    assert len(told & named) >= 0.9 * len(named), [(one, cases[one[0]][1][-200:]) for one in sorted(named - told)]
    assert sum(primary) >= 0.9 * len(primary)


def test_no_pattern_takes_long_for_any_line() -> None:
    groups = [each for kinds in SIGNS.values() for each in kinds.values()]
    patterns = [sign.pattern for group in groups for sign in group if sign.pattern]
    words = """contextsize|limit|a|a_|exceed|ratelimit|rate_limit|memory|no |error|out of memory|'|'a|Index|LLM |Prompt|
        |RateLimit|model |429 |/|site-packages/|HTTP|api key|kaggle|token |https:|pip install |reached |deployment """
    lines = [(word * 2000)[:2000] for word in words.split("|")]
    slow = {}
    for pattern in patterns:
        for line in lines:
            began = time.process_time()
            pattern.search(line)
            if (took := time.process_time() - began) > 0.05:
                slow[pattern.pattern[:60], line[:20]] = took
    assert not slow


@pytest.mark.parametrize("log", ["auc ", "auc (x", "auc\n", "\n", "auc=", "auc: 1", "1"])
def test_measurements_of_a_long_log_do_not_take_long(log: str) -> None:
    began = time.process_time()
    measurements("auc", (" auc" + log * 300_000)[:300_000])
    assert time.process_time() - began < 2
