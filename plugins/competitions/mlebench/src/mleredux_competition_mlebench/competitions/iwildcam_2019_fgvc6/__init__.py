"""iWildCam 2019 - FGVC6: camera traps; whole locations are held out."""

from ...blocks import FilesOfRows, Metric, Workspace, competition, recipe

IMAGES = FilesOfRows(
    tree="train_images.zip", source="{id}.jpg", train="train_images.zip", test="test_images.zip", zipped=True
)


@recipe("Id", "Category", answers="answers.csv")
def prepare(w: Workspace) -> None:
    """Split the locations; the published sample also has the raw row numbers, in a column without a name."""
    rows = w.table("train.csv", ("category_id", "id", "location"))
    train, test = w.split_groups(rows, "location", 0.1, 8)
    answers = test[["id", "category_id"]].set_axis(["Id", "Category"], axis=1)
    IMAGES(w, train, test)
    w.public("train.csv", train)
    w.public("test.csv", test.drop(columns="category_id"))
    w.public("sample_submission.csv", answers.assign(Category=0), index=True)
    w.private("answers.csv", answers)
    w.private("test.csv", test)


COMPETITION = competition(
    "iwildcam-2019-fgvc6",
    prepare=prepare,
    metric=Metric(grader="f1", options={"average": "macro", "labels": "integer"}),
)
