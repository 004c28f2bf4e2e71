"""SETI Breakthrough Listen - E.T. Signal Search: stacks of six spectrograms as NumPy files."""

from dataclasses import replace

from ...blocks import FilesOfRows, Metric, Table, TableSplit, Workspace, competition

OLD = "old_leaky_data"


def old_version(w: Workspace, _train: Table, _test: Table) -> None:
    """Keep the withdrawn first version of the data public, as published."""
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
    fixed=replace(SPLIT, files=[SAMPLES]),
)
