"""Movie Review Sentiment Analysis: phrases of film reviews, in zipped tab-separated tables."""

from functools import partial

from ...blocks import Csv, Metric, Workspace, Zip, competition, recipe


@recipe("PhraseId", "Sentiment", answers="answers.csv", sample="sampleSubmission.csv")
def prepare(w: Workspace, group: str | None = None) -> None:
    """Split the phrases; if sentences are held out as a unit, phrases such as "null" are kept too."""
    columns = ("PhraseId", "SentenceId", "Phrase", "Sentiment")
    read = {"keep_default_na": False} if group else {}
    table = w.table("train.tsv", columns, archive="train.tsv.zip", sep="\t", **read)
    train, test = w.split_groups(table, group, 0.3) if group else w.split(table, 0.3)
    for name, rows in (("train.tsv", train), ("test.tsv", test.drop(columns="Sentiment"))):
        w.public(f"{name}.zip", Zip({name: Csv(rows, {"sep": "\t"})}))
    w.public("sampleSubmission.csv", test[["PhraseId"]].assign(Sentiment=2))
    w.private("answers.csv", test)


COMPETITION = competition(
    "movie-review-sentiment-analysis-kernels-only",
    prepare=prepare,
    types={"Sentiment": "integer"},
    metric=Metric(grader="accuracy"),
    fixed=partial(prepare, group="SentenceId"),
)
