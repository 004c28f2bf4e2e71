"""Histopathologic Cancer Detection: small patches of tissue scans."""

from ...blocks import FilesOfRows, Metric, Workspace, by_group, competition, recipe

IMAGES = FilesOfRows(tree="train", source="{id}.tif")


@recipe("id", "label", answers="answers.csv")
def prepare(w: Workspace) -> None:
    """Hold out the share of unlabeled images among all images; rows keep the raw order."""
    rows = w.table("train_labels.csv", ("id", "label"))
    unlabelled = sum("/" not in name for name in w.tree("test").names(".tif"))
    ids = w.split(rows["id"].to_numpy(), unlabelled / (len(rows) + unlabelled))
    train, test = by_group(rows, "id", *ids)
    IMAGES(w, train, test)
    w.public("train_labels.csv", train)
    w.answers("answers.csv", "sample_submission.csv", test, label=0)


COMPETITION = competition(
    "histopathologic-cancer-detection",
    prepare=prepare,
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
)
