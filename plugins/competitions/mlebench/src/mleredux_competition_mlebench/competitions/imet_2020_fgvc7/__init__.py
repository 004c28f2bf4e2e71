"""iMet Collection 2020 - FGVC7: attributes of works of art."""

from ...blocks import FilesOfRows, Metric, TableSplit, competition

COMPETITION = competition(
    "imet-2020-fgvc7",
    prepare=TableSplit(
        ids="id",
        targets="attribute_ids",
        fill={"attribute_ids": "0 1 2"},
        test_size=0.15,
        test=None,
        answers="answers.csv",
        files=[FilesOfRows(tree="train", source="{id}.png")],
        copies=("labels.csv",),
    ),
    metric=Metric(grader="f1-multilabel", options={"missing": "blank"}),
    fixed=Metric(grader="f1-multilabel", options={"missing": "blank", "unknown": True}),
)
