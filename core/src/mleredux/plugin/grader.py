"""TODO grader"""

from __future__ import annotations

from mleredux._core.models import Grader, GradingInput, Score, Verdict

__all__ = [
    "Grader",
    "GradingInput",
    "Score",
    "Verdict",
]
