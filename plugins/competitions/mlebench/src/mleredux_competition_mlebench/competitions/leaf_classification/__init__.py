"""Leaf Classification: 99 species from leaf shapes and features extracted from them."""

from dataclasses import replace

from ...blocks import Files, Metric, Table, TableSplit, Workspace, classes, competition, texts

ID = "leaf-classification"
SPECIES = classes(ID)


def images(w: Workspace, train: Table, test: Table) -> None:
    """Provide one public folder for both parts, and an empty private one."""
    tree = w.tree("images.zip", inside="images")
    w.public("images", tree.pick(texts(train, "{id}.jpg") + texts(test, "{id}.jpg")))
    w.private("images", Files(tree, ()))


SPLIT = TableSplit(
    archive="train.csv.zip",
    ids="id",
    targets="species",
    classes=SPECIES,
    fill=dict.fromkeys(SPECIES, 1 / 99),
    files=[images],
)

COMPETITION = competition(
    ID,
    prepare=SPLIT,
    extra_columns=False,
    metric=Metric(grader="log-loss", options={"row_sum": {"rtol": 1e-05, "atol": 1e-06}}),
    fixed=replace(SPLIT, stratified=True),
)
