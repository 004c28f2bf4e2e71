"""Hotel-ID to Combat Human Trafficking 2021 - FGVC8: rooms of about 7,700 hotels."""

from ...blocks import Column, FilesOfRows, Metric, Table, TableSplit, Workspace, competition, corrected

TWICE = "ce27d36c9147cc19.jpg"


def unique_images(_w: Workspace, rows: Table) -> Table:
    """Return the rows without the image that is listed twice."""
    return rows[rows["image"] != TWICE]


def visits(_w: Workspace, rows: Table) -> Column:
    """Return the visit of each image: images of one hotel at one time."""
    return rows["hotel_id"].astype(str) + " " + rows["timestamp"].astype(str)


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
    fixed=corrected(
        group=visits,
    ),
)
