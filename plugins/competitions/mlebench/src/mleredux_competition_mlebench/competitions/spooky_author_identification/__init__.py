"""Spooky Author Identification: sentences of three authors."""

from ...blocks import Metric, TableSplit, classes, competition

ID = "spooky-author-identification"
AUTHORS = classes(ID)

COMPETITION = competition(
    ID,
    prepare=TableSplit(
        archive="train.zip",
        ids="id",
        targets="author",
        classes=AUTHORS,
        fill=dict(zip(AUTHORS, (0.403493538995863, 0.287808366106543, 0.308698094897594), strict=True)),
    ),
    extra_columns=False,
    metric=Metric(grader="log-loss", options={"row_sum": {"rtol": 1e-05, "atol": 1e-06}, "column_order": "id-first"}),
)
