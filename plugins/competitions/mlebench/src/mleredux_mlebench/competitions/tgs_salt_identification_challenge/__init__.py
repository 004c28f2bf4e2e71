"""TGS Salt Identification Challenge: small seismic images with masks; every table is sorted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux_mlebench.blocks import FilesOfRows, Metric, TableSplit, Workspace, competition

if TYPE_CHECKING:
    import pandas as pd

ARCHIVE, FOLDER = "competition_data.zip", "competition_data"


def by_id(_w: Workspace, train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both parts in the order of their ids."""
    return train.sort_values("id"), test.sort_values("id")


def depths(w: Workspace, train: pd.DataFrame, _test: pd.DataFrame) -> None:
    """The depth of training images only."""
    table = w.table("depths.csv", ("id", "z"))
    w.public("depths.csv", table[table["id"].isin(train["id"])].sort_values("id"))


COMPETITION = competition(
    "tgs-salt-identification-challenge",
    prepare=TableSplit(
        table=f"{FOLDER}/train.csv",
        archive=ARCHIVE,
        ids="id",
        targets="rle_mask",
        fill={"rle_mask": "1 1"},
        test_size=0.25,
        after=by_id,
        test=None,
        files=[
            FilesOfRows(tree=ARCHIVE, inside=f"{FOLDER}/train", source="images/{id}.png"),
            FilesOfRows(tree=ARCHIVE, inside=f"{FOLDER}/train", source="masks/{id}.png", test=None),
            depths,
        ],
    ),
    extra_columns=False,
    metric=Metric(
        grader="mask-precision",
        options={"height": 101, "width": 101, "missing": "blank", "empty_counts_as_full": True},
    ),
)
