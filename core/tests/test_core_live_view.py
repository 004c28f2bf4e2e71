"""The live view of runs, as terminals of 60, 80 and 120 columns show it: approved captures, which are compared.

After a change that is meant: `MLEREDUX_APPROVE=1 pytest core/tests/test_core_live_view.py`, then inspect them.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from mleredux._core.cli.run_progress import Progress
from rich.console import Console

CAPTURES = Path(__file__).parent / "captures"
AGENT = f"repo:/home/ada/agents/gradient-boosting.git@{'4f2c1aa' * 6}"[:90] + "#fast"


class Terminal:
    """A live view on a terminal of that size, at times that the test says."""

    def __init__(self, width: int, height: int = 30) -> None:
        self.now, self._width, self._height = 0.0, width, height
        self._console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True)
        self.progress = Progress(follow=False, quiet=False, console=self._console, clock=lambda: self.now)

    def picture(self) -> str:
        plain = Console(file=io.StringIO(), width=self._width, height=self._height, color_system=None)
        with plain.capture() as capture:
            plain.print(self.progress)
        return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def matrix(terminal: Terminal) -> None:
    """Three tasks, two agents and two seeds, two runs at a time: four have ended, two are at work."""
    progress = terminal.progress
    progress.jobs = 2
    names = []
    for task in ("digits", "spaceship-titanic+fixed", "tabular-playground-series-may-2022"):
        for agent in ("baseline", AGENT):
            for seed in (0, 1):
                names.append(f"run-{len(names)}")
                progress.add(names[-1], task, agent, seed=seed, limit=3600)
    ended = [("done", "0.99072 gold", 20), ("done", "0.98 gold", 22), ("failed", "not valid", 61), ("done", "0.97", 65)]
    for name, (state, submission, seconds) in zip(names, ended, strict=False):
        progress.update(name, "running the agent")
        terminal.now += seconds
        progress.submitted(name, submission)
        progress.update(name, state, ended=True)
    progress.update(names[4], "running the agent")
    progress.submitted(names[4], "v3 valid")
    terminal.now += 7.5
    progress.update(names[5], "building: step 6 of 10 (RUN python3 -m pip install lightgbm)")
    terminal.now += 2


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_live_view_is_as_approved(width: int) -> None:
    terminal = Terminal(width)
    matrix(terminal)
    picture, approved = terminal.picture(), CAPTURES / f"live-{width}.txt"
    if os.environ.get("MLEREDUX_APPROVE"):
        approved.parent.mkdir(exist_ok=True)
        approved.write_text(picture, encoding="utf-8")
    assert picture == approved.read_text(encoding="utf-8")
    assert all(len(line) <= width for line in picture.splitlines())


def test_rows_that_look_alike_are_told_apart() -> None:
    terminal = Terminal(80)
    for name in ("run-aaaaaa", "run-bbbbbb"):
        terminal.progress.add(name, "digits", "baseline")
    rows = terminal.picture().splitlines()[2:]
    assert len(set(rows)) == 2 and "bbbbbb" in rows[1]


def test_what_does_not_fit_is_counted() -> None:
    terminal = Terminal(80, height=10)
    matrix(terminal)
    lines = terminal.picture().splitlines()
    assert len(lines) < 10 and lines[-1] == "… 2 queued, 3 done, 1 failed"


def test_before_any_run_has_ended_the_limits_bound_what_is_left() -> None:
    terminal = Terminal(80)
    for seed in range(4):
        terminal.progress.add(f"run-{seed}", "digits", "baseline", seed=seed, limit=600)
    terminal.progress.jobs = 2
    terminal.progress.update("run-0", "running the agent")
    terminal.now = 60.0
    assert terminal.picture().splitlines()[0] == "0 of 4 done · 1 running · 1 min · at most 19 min 30 s left"
