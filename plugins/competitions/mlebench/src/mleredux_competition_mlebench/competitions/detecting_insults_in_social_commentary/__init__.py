"""Detecting Insults in Social Commentary: comments; Kaggle's labeled test file is the test set."""

from mleredux.errors import DataError

from ...blocks import Metric, Workspace, competition, recipe


@recipe("Comment", "Insult", sample="sample_submission_null.csv")
def prepare(w: Workspace) -> None:
    """Copy Kaggle's own parts, and remove the labels from the test set."""
    train = w.table("train.csv", ("Insult", "Date", "Comment"))
    test = w.table("test_with_solutions.csv", ("Insult", "Date", "Comment", "Usage"))
    if set(train["Comment"]) & set(test["Comment"]):
        raise DataError("Some comments are in both train.csv and test_with_solutions.csv.", hint="Get the files again.")
    w.public("train.csv", w.file("train.csv"))
    w.public("test.csv", test[["Date", "Comment"]])
    w.public("sample_submission_null.csv", test[["Insult", "Date", "Comment"]].assign(Insult=0))
    w.private("test.csv", w.file("test_with_solutions.csv"))
    w.private("gold_submission.csv", test[["Insult", "Date", "Comment"]])


COMPETITION = competition(
    "detecting-insults-in-social-commentary",
    prepare=prepare,
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
)
