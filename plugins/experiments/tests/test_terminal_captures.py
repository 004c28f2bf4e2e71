"""Lists in terminals of 60, 80 and 120 columns: approved captures, which are compared.

After a change that is meant: `MLEREDUX_APPROVE=1 pytest plugins/experiments/tests/test_terminal_captures.py`, then
inspect them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from mleredux_support.commands import mleredux

CAPTURES = Path(__file__).parent / "captures"
AGENT = "repo:/home/ada/agents/gradient-boosting@"
A, B = (f"{AGENT}{digit * 40}" for digit in "ab")
COMMANDS = {
    "compare": ("compare", "gradient-boosting@aaaaaaa", "gradient-boosting@bbbbbbb"),
    "leaderboard": ("leaderboard",),
    "list": ("list", "--set", "starter"),
    "search": ("plugins", "search", "sandbox"),
}


@pytest.fixture
def runs(add_run: Callable[..., Path], mleredux_home: Path) -> None:
    """Three tasks with two commits of one repository, and a baseline: medals, failures, long names."""
    medals = (None, "bronze", "silver", "gold")
    tasks = ("digits", "spaceship-titanic+fixed", "jigsaw-unintended-bias-in-toxicity-classification")
    for number, task in enumerate(tasks):
        for seed in (0, 1):
            add_run(task, "baseline", seed, score=0.61, seconds=7.25)
            medal = medals[(number + seed) % 4]
            add_run(task, A, seed, score=0.7 + number / 10 + seed / 100, medal=medal, seconds=75)
            if (number, seed) == (2, 1):
                add_run(task, B, seed, state="failed", cause="agent_crashed", seconds=7201)
            else:
                add_run(task, B, seed, score=0.91234 - seed / 50, medal="gold", seconds=3661)


@pytest.mark.parametrize("name", COMMANDS)
def test_lists_are_as_approved(runs: None, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for width in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        told = mleredux(*COMMANDS[name])
        assert told.code == 0, told.err
        printed = told.out.replace(version("mleredux"), "X.Y.Z")
        approved = CAPTURES / f"{name}-{width}.txt"
        if os.environ.get("MLEREDUX_APPROVE"):
            approved.parent.mkdir(exist_ok=True)
            approved.write_text(printed, encoding="utf-8")
        assert printed == approved.read_text(encoding="utf-8")
        assert "A wider terminal also shows" in told.err or width > 60 or name == "search"
        tables = [line for line in told.out.splitlines() if "  " in line]
        assert max(map(len, tables)) <= width
