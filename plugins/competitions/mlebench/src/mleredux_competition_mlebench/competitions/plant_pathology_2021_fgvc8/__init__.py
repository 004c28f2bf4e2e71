"""Plant Pathology 2021 - FGVC8: apple leaves with any number of diseases."""

from ...blocks import FilesOfRows, Metric, TableSplit, competition, corrected, look_alikes

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
        group=look_alikes("train_images", "{image}"),
        metric=Metric(grader="f1-multilabel", options={"missing": "blank", "unknown": True, "average": "samples"}),
        wrong=(
            "Copies of images occur in both training and test data, F1 is pooled over all labels, and "
            "predicted labels that occur nowhere in the answers are not penalized."
        ),
        done=(
            "Images that look the same on a grid of 17 by 16 cells are held out together, and the score "
            "is the mean of each image's F1, in which every wrong label counts."
        ),
    ),
)
