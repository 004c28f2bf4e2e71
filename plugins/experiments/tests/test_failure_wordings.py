"""The rules know the messages of real tools, and are not misled by other lines with their words."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mleredux_experiments.results.sources import read_run

sys.path.insert(0, str(Path(__file__).parent / "failures"))
from wordings import LAST, LATER, WORDINGS


@pytest.mark.parametrize("category", list(WORDINGS))
def test_messages_of_tools_are_recognised(category: str, add_run: Callable[..., Path]) -> None:
    messages = [message for each in (WORDINGS, LATER, LAST) for message in each.get(category, ())]
    missed = []
    for number, message in enumerate(messages):
        run = add_run("task", "agent", number, state="failed", cause="agent_crashed")
        (run / "logs").mkdir()
        (run / "logs" / "agent.log").write_text(f"epoch 1\n{message}\n")
        accepted = (category, "code-error") if category == "no-submission" else (category,)
        if (told := read_run(run, rollouts=True).failure) not in accepted:
            missed.append((told, message))
    assert len(missed) <= (0 if category == "no-submission" else 0.05 * len(messages)), missed
