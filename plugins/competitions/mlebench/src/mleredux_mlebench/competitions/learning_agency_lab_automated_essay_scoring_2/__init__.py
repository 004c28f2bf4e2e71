"""Learning Agency Lab, Automated Essay Scoring 2.0: grades of pupils' essays."""

from __future__ import annotations

from typing import Any

from mleredux_mlebench.blocks import Metric, Table, TableSplit, competition


def random_grades(test: Table) -> dict[str, Any]:
    """The sample's grades: they say nothing of the answers, so their seed is fixed in every variant."""
    import numpy as np

    return {"score": np.random.RandomState(42).randint(1, 7, len(test))}


COMPETITION = competition(
    "learning-agency-lab-automated-essay-scoring-2",
    prepare=TableSplit(ids="essay_id", targets="score", fill=random_grades, answers="answers.csv"),
    types={"score": "integer"},
    metric=Metric(grader="quadratic-weighted-kappa"),
)
