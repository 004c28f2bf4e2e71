"""Aerial Cactus Identification: aerial photographs in zip archives."""

from ...blocks import FilesOfRows, Metric, TableSplit, competition

COMPETITION = competition(
    "aerial-cactus-identification",
    prepare=TableSplit(
        ids="id",
        targets="has_cactus",
        fill={"has_cactus": 0.5},
        test_size=0.19,
        test=None,
        files=[
            FilesOfRows(
                tree="train.zip", inside="train", source="{id}", train="train.zip", test="test.zip", zipped=True
            )
        ],
    ),
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
)
