"""Hotel-ID to Combat Human Trafficking 2021 - FGVC8: rooms of some 7,700 hotels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux_mlebench.blocks import FilesOfRows, Metric, TableSplit, Workspace, competition

if TYPE_CHECKING:
    import pandas as pd

TWICE = "ce27d36c9147cc19.jpg"


def unique_images(_w: Workspace, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows without the one image that is listed twice."""
    return rows[rows["image"] != TWICE]


COMPETITION = competition(
    "hotel-id-2021-fgvc8",
    prepare=TableSplit(
        ids="image",
        targets="hotel_id",
        fill={"hotel_id": "36363 53586 18807 64314 60181"},
        before=unique_images,
        test=None,
        files=[
            FilesOfRows(
                tree="train_images",
                source="{chain}/{image}",
                train="train_images",
                test="test_images",
                test_name="{image}",
            )
        ],
    ),
    metric=Metric(grader="map-at-k", options={"k": 5, "missing": "nan", "numbers": "text"}),
)
