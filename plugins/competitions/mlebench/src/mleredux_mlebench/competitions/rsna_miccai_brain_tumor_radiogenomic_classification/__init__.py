"""RSNA-MICCAI Brain Tumor Radiogenomic Classification: one folder of DICOM series per case."""

from mleredux_mlebench.blocks import FilesOfRows, Metric, TableSplit, competition

COMPETITION = competition(
    "rsna-miccai-brain-tumor-radiogenomic-classification",
    prepare=TableSplit(
        table="train_labels.csv",
        read={"dtype": {"BraTS21ID": str, "MGMT_value": int}},
        ids="BraTS21ID",
        targets="MGMT_value",
        fill={"MGMT_value": 0.5},
        train="train_labels.csv",
        test=None,
        files=[FilesOfRows(tree="train", source="{BraTS21ID}", folders=True)],
    ),
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
)
