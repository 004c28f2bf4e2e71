"""TGS Salt Identification Challenge: small seismic images with masks; every table is sorted."""

from dataclasses import replace
from functools import partial

from ...blocks import FilesOfRows, Metric, Table, TableSplit, Workspace, competition, corrected

ARCHIVE, FOLDER = "competition_data.zip", "competition_data"
MASKS = {"height": 101, "width": 101, "missing": "blank"}


def by_id(_w: Workspace, train: Table, test: Table) -> tuple[Table, Table]:
    """Return both parts, sorted by id."""
    return train.sort_values("id"), test.sort_values("id")


def depths(w: Workspace, *parts: Table, every: bool = False) -> None:
    """Provide the depths of training images; with `every`, of all images."""
    table = w.table("depths.csv", ("id", "z"))
    known = {name for rows in parts[: 2 if every else 1] for name in rows["id"]}
    w.public("depths.csv", table[table["id"].isin(known)].sort_values("id"))


IMAGES = (
    FilesOfRows(tree=ARCHIVE, inside=f"{FOLDER}/train", source="images/{id}.png"),
    FilesOfRows(tree=ARCHIVE, inside=f"{FOLDER}/train", source="masks/{id}.png", test=None),
)
SPLIT = TableSplit(
    table=f"{FOLDER}/train.csv",
    archive=ARCHIVE,
    ids="id",
    targets="rle_mask",
    fill={"rle_mask": "1 1"},
    test_size=0.25,
    after=by_id,
    test=None,
    files=[*IMAGES, depths],
)

COMPETITION = competition(
    "tgs-salt-identification-challenge",
    prepare=SPLIT,
    extra_columns=False,
    metric=Metric(grader="mask-precision", options={**MASKS, "empty_counts_as_full": True}),
    fixed=corrected(
        replace(SPLIT, files=[*IMAGES, partial(depths, every=True)]),
        metric=Metric(grader="mask-precision", options=MASKS),
    ),
)
