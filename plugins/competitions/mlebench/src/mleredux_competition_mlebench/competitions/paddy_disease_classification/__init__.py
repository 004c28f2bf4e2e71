"""Paddy Doctor: rice leaves in a folder per disease."""

from ...blocks import FilesOfRows, Metric, TableSplit, competition

COMPETITION = competition(
    "paddy-disease-classification",
    prepare=TableSplit(
        ids="image_id",
        targets="label",
        fill={"label": ""},
        test_size=None,
        train_size=0.75,
        test=None,
        files=[
            FilesOfRows(
                tree="train_images",
                source="{label}/{image_id}",
                train="train_images",
                test="test_images",
                test_name="{image_id}",
            )
        ],
    ),
    types={"label": "string"},
    metric=Metric(grader="accuracy", options={"missing": "blank"}),
)
