"""Bristol-Myers Squibb - Molecular Translation: drawings of molecules, three folder levels deep."""

from ...blocks import FilesOfRows, Metric, TableSplit, competition

COMPETITION = competition(
    "bms-molecular-translation",
    prepare=TableSplit(
        table="train_labels.csv",
        ids="image_id",
        targets="InChI",
        fill={"InChI": "InChI=1S/H2O/h1H2"},
        test_size=0.2,
        train="train_labels.csv",
        test=None,
        files=[FilesOfRows(tree="train", source="{image_id[0]}/{image_id[1]}/{image_id[2]}/{image_id}.png")],
        copies=("extra_approved_InChIs.csv",),
    ),
    metric=Metric(grader="levenshtein", options={"missing": "nan", "numbers": "text"}),
)
