"""Herbarium 2021 - FGVC8: vascular plants of five herbaria."""

from ...blocks import Metric, competition
from ...blocks.per_category import herbarium

COMPETITION = competition(
    "herbarium-2021-fgvc8",
    prepare=herbarium("", "utf-8"),
    metric=Metric(grader="f1", options={"average": "macro", "labels": "integer"}),
)
