"""Plant Pathology 2020 - FGVC7: apple leaves; all images are in one folder, renumbered in each part."""

from ...blocks import Metric, Table, TableSplit, Workspace, competition

TARGETS = ("healthy", "multiple_diseases", "rust", "scab")


def numbers(prefix: str, rows: Table) -> list[str]:
    """Return new ids in row order."""
    return [f"{prefix}_{n}" for n in range(len(rows))]


def images(w: Workspace, train: Table, test: Table) -> None:
    """Put both parts in one folder, under their new ids."""
    tree = w.tree("images")
    old = [*train["image_id"], *test["image_id"]]
    new = numbers("Train", train) + numbers("Test", test)
    w.public("images", tree.pick([f"{id}.jpg" for id in old], [f"{id}.jpg" for id in new]))


def renumber(_w: Workspace, train: Table, test: Table) -> tuple[Table, Table]:
    """Assign ids that distinguish the parts and reveal nothing else."""
    return train.assign(image_id=numbers("Train", train)), test.assign(image_id=numbers("Test", test))


COMPETITION = competition(
    "plant-pathology-2020-fgvc7",
    prepare=TableSplit(
        ids="image_id", targets=TARGETS, fill=dict.fromkeys(TARGETS, 0.25), files=[images], after=renumber
    ),
    extra_columns=False,
    metric=Metric(grader="roc-auc"),
)
