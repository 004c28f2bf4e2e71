"""Tabular Playground Series, December 2021: synthetic forest cover in four million rows."""

from ...blocks import Metric, TableSplit, competition

COMPETITION = competition(
    "tabular-playground-series-dec-2021",
    prepare=TableSplit(ids="Id", targets="Cover_Type", fill={"Cover_Type": 2}),
    types={"Cover_Type": "integer"},
    metric=Metric(grader="accuracy"),
)
