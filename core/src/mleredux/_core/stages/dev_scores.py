"""Scores that an agent gets while it works, on a fixed set of rows held back from the task's training data."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mleredux._core.stages.context import StageContext
from mleredux._core.stages.grade import Job, score_in_children
from mleredux._core.submissions.schema import refuse_malformed
from mleredux.errors import InvalidSubmission
from mleredux.models import Score
from mleredux.models.events import DevScored
from mleredux.models.formats import plain

FOLDER = "inner"
"""The prepared folder of the inner task, among the private files."""
_DIGITS, _SECONDS = 4, 600.0
BITS = math.log2(2 * 9 * 10 ** (_DIGITS - 1) * 64)
"""Maximum information, in bits, in a score with `_DIGITS` significant digits, a sign and one of 64 exponents."""


class DevScores:
    """Scores files on the inner split of a run's task, as often as the run's limits allow.

    Answers and scoring are outside the sandbox. Files that validation refuses do not count: their refusal reveals
    nothing about the answers. All others do, even without a score, because the answers decide whether they have one.

    Args:
        context: The run.
        private: The private files of its task, which must have an inner split.
    """

    def __init__(self, context: StageContext, private: Path) -> None:
        assert context.task.inner is not None
        self._context, self._task = context, context.task.inner
        self._answers = private / FOLDER / "private"

    def __call__(self, path: Path, stopped: Callable[[], bool]) -> Callable[[], dict[str, Any]]:
        """Score a file with predictions.

        Args:
            path: The file.
            stopped: Returns whether the agent has ended.

        Returns:
            A function that records the score and returns it, with the number of scores that are left and a message.

        Raises:
            Cancelled: The agent ended in the meantime.
        """
        run = self._context.run
        left = run.spec.limits.dev_scores - len(run.log.state.dev_scores)
        if left <= 0:
            return lambda: {"score": None, "left": 0, "message": "This run has used all of its development scores."}
        try:
            refuse_malformed(self._task, path, self._answers)
        except InvalidSubmission as error:
            refusal = {"score": None, "left": left, "message": str(error)}
            return lambda: refusal
        job = Job(self._task, path, self._answers)
        [result] = score_in_children([job], self._context.catalogue, cancelled=stopped, seconds=_SECONDS)
        score, message = None, "These predictions have no finite score; this counts as one of your scores."
        if isinstance(result, Score) and math.isfinite(result.value):
            score = float(f"{result.value:.{_DIGITS}g}")
            message = f"{self._task.metric.id}: {plain(score)}."

        def answer() -> dict[str, Any]:
            run.emit(DevScored(score=score))
            return {"score": score, "left": left - 1, "message": message}

        return answer
