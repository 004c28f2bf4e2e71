"""RANZCR CLiP - Catheter and Line Position Challenge: nine of the eleven labels are scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux_mlebench.blocks import FilesOfRows, Metric, TableSplit, Workspace, classes, competition
from mleredux_mlebench.blocks.fixed import held_out_by

if TYPE_CHECKING:
    import pandas as pd

ID = "ranzcr-clip-catheter-line-classification"
SCORED = classes(ID)


def courses(w: Workspace, train: pd.DataFrame, _test: pd.DataFrame) -> None:
    """The courses of tubes, on training images only."""
    table = w.table("train_annotations.csv", ["StudyInstanceUID"])
    w.public("train_annotations.csv", table[table["StudyInstanceUID"].isin(train["StudyInstanceUID"])])


COMPETITION = competition(
    ID,
    prepare=TableSplit(
        ids="StudyInstanceUID",
        targets=SCORED,
        fill=dict.fromkeys(SCORED, 0),
        test=None,
        files=[FilesOfRows(tree="train", source="{StudyInstanceUID}.jpg"), courses],
    ),
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
    variants={
        "fixed": held_out_by(
            "PatientID",
            wrong="Images of one patient are in training and test.",
            done="Patients are held out whole; two of the eleven labels are still not scored.",
        )
    },
)
