"""For authors of graders: the declaration of a metric.

Functions that read, check and match tables, or create a grader from a function, are in the kit `mleredux_tables`. The
kit `mleredux_programs` has `run_confined`, which executes submitted code; never execute it in the grader's process::

    from mleredux.plugin.grader import Grader, GradingInput, Score

    def score(given: GradingInput) -> Score:
        return Score(value=float(len(given.submission.read_bytes())))

    GRADER = Grader(id="size", title="Size in bytes", direction="minimize", score=score)
"""

from __future__ import annotations

from typing import Any

from mleredux._core.moved import moved
from mleredux.models import FormInput as FormInput
from mleredux.models import Grader as Grader
from mleredux.models import GradingInput as GradingInput
from mleredux.models import Score as Score


def __getattr__(name: str) -> Any:
    kit = "mleredux_programs" if name in ("MEAN_RETURN", "Confined", "run_confined") else "mleredux_tables"
    return moved(__name__, kit, depth=3)(name)
