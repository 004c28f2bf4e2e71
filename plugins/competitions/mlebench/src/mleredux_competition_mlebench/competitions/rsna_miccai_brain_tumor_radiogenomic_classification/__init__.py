"""RSNA-MICCAI Brain Tumor Radiogenomic Classification: one folder of DICOM series per case."""

from dataclasses import replace

from ...blocks import FilesOfRows, Metric, Table, TableSplit, Workspace, competition

FAULTY = ("00109", "00123", "00709")


def sound(_w: Workspace, rows: Table) -> Table:
    """Return the cases without those whose images are known to be faulty."""
    return rows[~rows["BraTS21ID"].isin(FAULTY)]


SPLIT = TableSplit(
    table="train_labels.csv",
    read={"dtype": {"BraTS21ID": str, "MGMT_value": int}},
    ids="BraTS21ID",
    targets="MGMT_value",
    fill={"MGMT_value": 0.5},
    train="train_labels.csv",
    test=None,
    files=[FilesOfRows(tree="train", source="{BraTS21ID}", folders=True)],
)

COMPETITION = competition(
    "rsna-miccai-brain-tumor-radiogenomic-classification",
    prepare=SPLIT,
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
    fixed=replace(SPLIT, before=sound),
)
