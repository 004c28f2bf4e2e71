"""Spaceship Titanic."""

from ...blocks import Metric, TableSplit, competition

COMPETITION = competition(
    "spaceship-titanic",
    prepare=TableSplit(ids="PassengerId", targets="Transported", fill={"Transported": False}),
    metric=Metric(grader="accuracy"),
)
