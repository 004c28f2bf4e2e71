"""Leaf Classification: 99 species from leaf shapes and numbers taken from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux_mlebench.blocks import Files, Metric, TableSplit, Workspace, classes, competition, texts

if TYPE_CHECKING:
    import pandas as pd

ID = "leaf-classification"
SPECIES = classes(ID)


def images(w: Workspace, train: pd.DataFrame, test: pd.DataFrame) -> None:
    """One public folder for both parts, and an empty private one."""
    tree = w.tree("images.zip", inside="images")
    w.public("images", tree.pick(texts(train, "{id}.jpg") + texts(test, "{id}.jpg")))
    w.private("images", Files(tree, ()))


COMPETITION = competition(
    ID,
    prepare=TableSplit(
        archive="train.csv.zip",
        ids="id",
        targets="species",
        classes=SPECIES,
        fill=dict.fromkeys(SPECIES, 1 / 99),
        files=[images],
    ),
    extra_columns=False,
    metric=Metric(grader="log-loss", options={"row_sum": {"rtol": 1e-05, "atol": 1e-06}}),
)
