"""Kuzushiji Recognition: all characters on old book pages, with their positions."""

from mleredux.errors import DataError

from ...blocks import Column, FilesOfRows, Metric, Table, TableSplit, Workspace, competition, corrected

BOX = 5


def points(labels: object) -> str:
    """Return the perfect answer: a point just inside the top-left corner of each box.

    Args:
        labels: Character, left, top, width and height of every box, separated by spaces; missing for pages without
            boxes.
    """
    if not isinstance(labels, str):
        return ""
    pieces = labels.split(" ")
    if len(pieces) % BOX:
        raise DataError("train.csv has a page whose labels are not in groups of five.", hint="Get the raw data again.")
    return " ".join(
        f"{pieces[n]} {int(pieces[n + 1]) + 1} {int(pieces[n + 2]) + 1}" for n in range(0, len(pieces), BOX)
    )


def gold(w: Workspace, _train: Table, test: Table) -> None:
    """Return the perfect submission, which the grader needs."""
    w.private("gold_submission.csv", test[["image_id"]].assign(labels=test["labels"].map(points)))


def books(_w: Workspace, rows: Table) -> Column:
    """Return the book of each page: the beginning of names such as `umgy003-020` and `100241706_00003_2`."""
    return rows["image_id"].str.extract(r"^([^-_]+)", expand=False)


COMPETITION = competition(
    "kuzushiji-recognition",
    prepare=TableSplit(
        ids="image_id",
        targets="labels",
        fill={"labels": "U+003F 1 1 U+FF2F 2 2"},
        test=None,
        files=[
            FilesOfRows(
                tree="train_images.zip",
                source="{image_id}.jpg",
                train="train_images.zip",
                test="test_images.zip",
                zipped=True,
            ),
            gold,
        ],
        copies=("unicode_translation.csv",),
    ),
    metric=Metric(grader="located-f1", options={"missing": "blank"}),
    fixed=corrected(
        group=books,
        metric=Metric(grader="located-f1", options={"missing": "blank", "most_points": 1200}),
    ),
)
