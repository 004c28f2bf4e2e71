"""Movie Review Sentiment Analysis: phrases of film reviews, in zipped tab-separated tables."""

from __future__ import annotations

from mleredux_mlebench.blocks import Csv, Metric, Workspace, Zip, competition


def prepare(w: Workspace) -> None:
    """Split the phrases."""
    columns = ("PhraseId", "SentenceId", "Phrase", "Sentiment")
    train, test = w.split(w.table("train.tsv", columns, archive="train.tsv.zip", sep="\t"), 0.3)
    for name, rows in (("train.tsv", train), ("test.tsv", test.drop(columns="Sentiment"))):
        w.public(f"{name}.zip", Zip({name: Csv(rows, {"sep": "\t"})}))
    w.public("sampleSubmission.csv", test[["PhraseId"]].assign(Sentiment=2))
    w.private("answers.csv", test)


COMPETITION = competition(
    "movie-review-sentiment-analysis-kernels-only",
    prepare=prepare,
    answers="answers.csv",
    sample="sampleSubmission.csv",
    id_columns=("PhraseId",),
    target_columns=("Sentiment",),
    metric=Metric(grader="accuracy"),
)
