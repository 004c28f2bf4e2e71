"""Toxic Comment Classification Challenge: Kaggle's own test set, with the labels published later."""

from mleredux.errors import DataError

from ...blocks import Metric, Workspace, classes, competition, recipe

ID = "jigsaw-toxic-comment-classification-challenge"
LABELS = classes(ID)
SCORED = {"match": "sorted-known", "drop_negative_truth": True}


@recipe("id", LABELS)
def prepare(w: Workspace) -> None:
    """Copy all rows, including those that are not scored, whose labels are -1."""
    train, test, answers, sample = (
        w.table(f"{name}.csv", ("id", *columns), archive=f"{name}.csv.zip")
        for name, columns in (
            ("train", ("comment_text", *LABELS)),
            ("test", ("comment_text",)),
            ("test_labels", LABELS),
            ("sample_submission", LABELS),
        )
    )
    if not sorted(answers["id"]) == sorted(test["id"]) == sorted(sample["id"]):
        raise DataError(
            "test.csv, test_labels.csv and sample_submission.csv have different ids.", hint="Get them again."
        )
    if train["id"].isin(test["id"]).any():
        raise DataError("Some comments are in both train.csv and test.csv.", hint="Get the raw data again.")
    w.public("train.csv", train)
    w.public("test.csv", test)
    w.public("sample_submission.csv", sample.assign(**dict.fromkeys(LABELS, 0.5)))
    w.private("test.csv", answers)


COMPETITION = competition(
    ID,
    prepare=prepare,
    extra_columns=False,
    metric=Metric(grader="roc-auc", options={**SCORED, "column_order": "file"}),
    fixed=Metric(grader="roc-auc", options=SCORED),
)
