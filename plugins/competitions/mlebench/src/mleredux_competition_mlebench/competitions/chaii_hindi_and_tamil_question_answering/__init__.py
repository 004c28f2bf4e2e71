"""chaii: questions in Hindi and Tamil, answered by an excerpt of a given text."""

from functools import partial

from ...blocks import Metric, Workspace, competition, recipe

COLUMNS = ("id", "context", "question", "answer_text", "answer_start", "language")


@recipe("id", "PredictionString")
def prepare(w: Workspace, group: str | None = None) -> None:
    """Split the questions; the answer column gets the name that it has in submissions."""
    rows = w.table("train.csv", COLUMNS)
    train, test = w.split_groups(rows, group) if group else w.split(rows)
    answers = test[["id", "answer_text"]].rename(columns={"answer_text": "PredictionString"})
    w.public("train.csv", train)
    w.public("test.csv", test.drop(columns=["answer_start", "answer_text"]))
    w.answers("test.csv", "sample_submission.csv", answers, PredictionString="dummy text")


COMPETITION = competition(
    "chaii-hindi-and-tamil-question-answering",
    prepare=prepare,
    metric=Metric(grader="word-jaccard", options={"missing": "blank", "both_empty": "zero"}),
    fixed=partial(prepare, group="context"),
)
