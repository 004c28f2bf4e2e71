"""Learning Agency Lab, Automated Essay Scoring 2.0: grades of student essays."""

from typing import Any

from ...blocks import Metric, Table, TableSplit, competition


def random_grades(test: Table) -> dict[str, Any]:
    """Draw the sample's grades: they reveal nothing about the answers, so the seed is the same in every variant."""
    import numpy as np

    return {"score": np.random.RandomState(42).randint(1, 7, len(test))}


COMPETITION = competition(
    "learning-agency-lab-automated-essay-scoring-2",
    prepare=TableSplit(ids="essay_id", targets="score", fill=random_grades, answers="answers.csv"),
    types={"score": "integer"},
    metric=Metric(grader="quadratic-weighted-kappa"),
    fixed=Metric(grader="quadratic-weighted-kappa", options={"scale": [1, 6]}),
)
