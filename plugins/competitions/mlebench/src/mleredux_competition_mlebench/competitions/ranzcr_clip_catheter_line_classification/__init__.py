"""RANZCR CLiP - Catheter and Line Position Challenge: nine of the eleven labels are scored."""

from dataclasses import replace

from ...blocks import FilesOfRows, Metric, Table, TableSplit, Workspace, classes, competition, corrected

ID = "ranzcr-clip-catheter-line-classification"
SCORED = classes(ID)
UNSCORED = ("CVC - Normal", "Swan Ganz Catheter Present")


def courses(w: Workspace, train: Table, _test: Table) -> None:
    """Provide the courses of tubes, for training images only."""
    table = w.table("train_annotations.csv", ["StudyInstanceUID"])
    w.public("train_annotations.csv", table[table["StudyInstanceUID"].isin(train["StudyInstanceUID"])])


SPLIT = TableSplit(
    ids="StudyInstanceUID",
    targets=SCORED,
    fill=dict.fromkeys(SCORED, 0),
    test=None,
    files=[FilesOfRows(tree="train", source="{StudyInstanceUID}.jpg"), courses],
)
EVERY = (*SCORED, *UNSCORED)

COMPETITION = competition(
    ID,
    prepare=SPLIT,
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
    fixed=corrected(
        replace(SPLIT, group="PatientID", targets=EVERY, fill=dict.fromkeys(EVERY, 0)),
        submission={"target_columns": EVERY},
    ),
)
