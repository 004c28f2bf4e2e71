"""APTOS 2019 Blindness Detection: retina photographs."""

from mleredux_mlebench.blocks import FilesOfRows, Metric, TableSplit, competition

COMPETITION = competition(
    "aptos2019-blindness-detection",
    prepare=TableSplit(
        ids="id_code",
        targets="diagnosis",
        fill={"diagnosis": 0},
        files=[FilesOfRows(tree="train_images", source="{id_code}.png", train="train_images", test="test_images")],
    ),
    metric=Metric(grader="quadratic-weighted-kappa"),
)
