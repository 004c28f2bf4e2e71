"""Herbarium 2020 - FGVC7: vascular plants of the Americas, their names read as Latin-1."""

from ...blocks import Metric, competition
from ...blocks.per_category import herbarium

COMPETITION = competition(
    "herbarium-2020-fgvc7",
    prepare=herbarium("nybg2020/", "latin-1"),
    metric=Metric(grader="f1", options={"average": "macro", "labels": "integer"}),
)
