"""Dog Breed Identification: photographs of 120 breeds."""

from ...blocks import FilesOfRows, Metric, TableSplit, classes, competition

ID = "dog-breed-identification"
BREEDS = classes(ID)

COMPETITION = competition(
    ID,
    prepare=TableSplit(
        table="labels.csv",
        ids="id",
        targets="breed",
        classes=BREEDS,
        fill=dict.fromkeys(BREEDS, 1 / 120),
        train="labels.csv",
        test=None,
        files=[FilesOfRows(tree="train", source="{id}.jpg")],
    ),
    metric=Metric(grader="log-loss", options={"row_sum": {"rtol": 1e-05, "atol": 1e-06}}),
)
