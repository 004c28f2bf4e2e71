"""chaii: questions in Hindi and Tamil, answered by a piece of a given text."""

from __future__ import annotations

from mleredux_mlebench.blocks import Metric, Workspace, competition

COLUMNS = ("id", "context", "question", "answer_text", "answer_start", "language")


def prepare(w: Workspace) -> None:
    """Split the questions; the answer gets the name that submissions use."""
    train, test = w.split(w.table("train.csv", COLUMNS))
    answers = test[["id", "answer_text"]].rename(columns={"answer_text": "PredictionString"})
    w.public("train.csv", train)
    w.public("test.csv", test.drop(columns=["answer_start", "answer_text"]))
    w.public("sample_submission.csv", answers.assign(PredictionString="dummy text"))
    w.private("test.csv", answers)


COMPETITION = competition(
    "chaii-hindi-and-tamil-question-answering",
    prepare=prepare,
    id_columns=("id",),
    target_columns=("PredictionString",),
    metric=Metric(grader="word-jaccard", options={"missing": "blank", "both_empty": "zero"}),
)
