"""The score of a policy."""

from __future__ import annotations

import csv

from mleredux.models.grader import Grader, GradingInput, Score


def _score(inputs: GradingInput) -> Score:
    with inputs.submission.open(encoding="utf-8", newline="") as file:
        returns = [float(row["return"]) for row in csv.DictReader(file)]
    return Score(value=sum(returns) / len(returns), details={"episodes": len(returns)})


MEAN_RETURN = Grader(id="mean-return", title="Mean return of a policy", direction="maximize", score=_score)
"""The sum of rewards, averaged over the private episodes."""
