"""Playground Series S3E18: six properties of molecules in a synthetic table, two of which are predicted."""

from ...blocks import Metric, TableSplit, competition

KNOWN = ("EC1", "EC2", "EC3", "EC4", "EC5", "EC6")

COMPETITION = competition(
    "playground-series-s3e18",
    prepare=TableSplit(ids="id", targets=KNOWN, fill={"EC1": 0.5, "EC2": 0.5}),
    target_columns=("EC1", "EC2"),
    metric=Metric(grader="roc-auc"),
)
