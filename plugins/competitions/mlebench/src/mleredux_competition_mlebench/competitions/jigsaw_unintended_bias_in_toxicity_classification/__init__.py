"""Jigsaw Unintended Bias in Toxicity Classification: Kaggle's private test set, with the labels published later."""

from ...blocks import Metric, Workspace, classes, competition, recipe

ID = "jigsaw-unintended-bias-in-toxicity-classification"
IDENTITIES = classes(ID)
SCORED = {"identities": list(IDENTITIES), "truth": ["toxicity"], "synonyms": {"toxicity": "prediction"}}


@recipe("id", "prediction")
def prepare(w: Workspace) -> None:
    """Copy the training table and the answers unchanged."""
    test = w.table("test_private_expanded.csv", ("id", "comment_text", "toxicity", *IDENTITIES))
    w.public("train.csv", w.file("train.csv"))
    w.public("test.csv", test[["id", "comment_text"]])
    w.public("sample_submission.csv", test[["id"]].assign(prediction=0.0))
    w.private("test.csv", w.file("test_private_expanded.csv"))


COMPETITION = competition(
    ID,
    prepare=prepare,
    metric=Metric(grader="bias-roc-auc", options={**SCORED, "binarize": True}),
    fixed=Metric(grader="bias-roc-auc", options=SCORED),
)
