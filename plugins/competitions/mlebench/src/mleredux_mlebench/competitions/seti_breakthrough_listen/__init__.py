"""SETI Breakthrough Listen - E.T. Signal Search: stacks of six spectrograms as NumPy files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mleredux_mlebench.blocks import FilesOfRows, Metric, TableSplit, Workspace, competition
from mleredux_mlebench.blocks.fixed import mended

if TYPE_CHECKING:
    import pandas as pd

OLD = "old_leaky_data"


def old_version(w: Workspace, _train: pd.DataFrame, _test: pd.DataFrame) -> None:
    """The withdrawn first version of the data stays public, as published."""
    w.public(OLD, w.tree(OLD).all())


SAMPLES = FilesOfRows(tree="train", source="{id[0]}/{id}.npy")
SPLIT = TableSplit(
    table="train_labels.csv",
    ids="id",
    targets="target",
    fill={"target": 0.5},
    train="train_labels.csv",
    test=None,
    files=[SAMPLES, old_version],
)

COMPETITION = competition(
    "seti-breakthrough-listen",
    prepare=SPLIT,
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
    fixed=mended(
        replace(SPLIT, files=[SAMPLES]),
        wrong=(
            "The withdrawn first version of the data is public with its labels, and may hold signals of test samples."
        ),
        done="It is left out.",
    ),
)
