"""Facebook Recruiting III: the tags of millions of questions from many sites."""

from functools import partial

from ...blocks import Metric, Workspace, competition, corrected, recipe

FREQUENT = "javascript c# python php java"


@recipe("Id", "Tags")
def prepare(w: Workspace, group: str | None = None) -> None:
    """Split the questions; the sample contains the texts too, like the published one."""
    columns = ("Id", "Title", "Body", "Tags")
    read = {"keep_default_na": False} if group else {}  # a question may have "null" as its only tag
    rows = w.table("Train.csv", columns, archive="Train.zip", dtype={"Id": str, "Tags": str}, **read)
    train, test = w.split_groups(rows, group) if group else w.split(rows)
    hidden = test.drop(columns="Tags")
    w.public("train.csv", train)
    w.public("test.csv", hidden)
    w.public("sample_submission.csv", hidden.assign(Tags=FREQUENT))
    w.private("test.csv", test)


COMPETITION = competition(
    "facebook-recruiting-iii-keyword-extraction",
    prepare=prepare,
    metric=Metric(grader="f1-multilabel", options={"missing": "blank"}),
    fixed=corrected(
        partial(prepare, group="Title"),
        metric=Metric(grader="f1-multilabel", options={"missing": "blank", "unknown": True, "average": "samples"}),
    ),
)
