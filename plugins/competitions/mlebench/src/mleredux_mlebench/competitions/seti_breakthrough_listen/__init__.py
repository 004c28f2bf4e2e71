"""SETI Breakthrough Listen - E.T. Signal Search: stacks of six spectrograms as NumPy files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux_mlebench.blocks import FilesOfRows, Metric, TableSplit, Workspace, competition

if TYPE_CHECKING:
    import pandas as pd

OLD = "old_leaky_data"


def old_version(w: Workspace, _train: pd.DataFrame, _test: pd.DataFrame) -> None:
    """The withdrawn first version of the data stays public, as published."""
    w.public(OLD, w.tree(OLD).all())


COMPETITION = competition(
    "seti-breakthrough-listen",
    prepare=TableSplit(
        table="train_labels.csv",
        ids="id",
        targets="target",
        fill={"target": 0.5},
        train="train_labels.csv",
        test=None,
        files=[FilesOfRows(tree="train", source="{id[0]}/{id}.npy"), old_version],
    ),
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
)
