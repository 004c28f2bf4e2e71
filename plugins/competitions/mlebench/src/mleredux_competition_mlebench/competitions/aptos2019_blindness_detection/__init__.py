"""APTOS 2019 Blindness Detection: retina photographs."""

from ...blocks import FilesOfRows, Metric, TableSplit, competition, corrected, similar_images

COMPETITION = competition(
    "aptos2019-blindness-detection",
    prepare=TableSplit(
        ids="id_code",
        targets="diagnosis",
        fill={"diagnosis": 0},
        files=[FilesOfRows(tree="train_images", source="{id_code}.png", train="train_images", test="test_images")],
    ),
    metric=Metric(grader="quadratic-weighted-kappa"),
    fixed=corrected(
        group=similar_images("train_images", "{id_code}.png"),
        metric=Metric(grader="quadratic-weighted-kappa", options={"scale": [0, 4]}),
    ),
)
