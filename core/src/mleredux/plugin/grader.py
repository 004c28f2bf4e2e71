"""For authors of graders: the declaration of a metric, and the isolated execution of submitted code.

`run_confined` executes submitted code; never execute it in the grader's own process. Functions that read, check and
match tables, and that make a grader of a function, are in the kit `mleredux_tables`::

    from mleredux.plugin.grader import Grader, GradingInput, Score

    def score(given: GradingInput) -> Score:
        return Score(value=float(len(given.submission.read_bytes())))

    GRADER = Grader(id="size", title="Size in bytes", direction="minimize", score=score)
"""

from __future__ import annotations

from typing import Any

from mleredux._core.execution.returns import MEAN_RETURN
from mleredux._core.moved import moved
from mleredux._core.sandboxes.confined import Confined, run_confined
from mleredux.models import FormInput, Grader, GradingInput, Score, Verdict

__all__ = [
    "MEAN_RETURN",
    "Confined",
    "FormInput",
    "Grader",
    "GradingInput",
    "Score",
    "Verdict",
    "run_confined",
]


def __getattr__(name: str) -> Any:
    return moved(__name__, name, "mleredux_tables")
