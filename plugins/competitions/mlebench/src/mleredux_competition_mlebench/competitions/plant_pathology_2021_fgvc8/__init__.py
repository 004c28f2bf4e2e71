"""Plant Pathology 2021 - FGVC8: apple leaves with any number of diseases."""

from ...blocks import FilesOfRows, Metric, TableSplit, competition, corrected, similar_images

COMPETITION = competition(
    "plant-pathology-2021-fgvc8",
    prepare=TableSplit(
        ids="image",
        targets="labels",
        fill={"labels": "healthy"},
        test_size=0.2,
        test=None,
        answers="answers.csv",
        files=[FilesOfRows(tree="train_images", source="{image}", train="train_images", test="test_images")],
    ),
    metric=Metric(grader="f1-multilabel", options={"missing": "blank"}),
    fixed=corrected(
        group=similar_images("train_images", "{image}"),
        metric=Metric(grader="f1-multilabel", options={"missing": "blank", "unknown": True, "average": "samples"}),
    ),
)
