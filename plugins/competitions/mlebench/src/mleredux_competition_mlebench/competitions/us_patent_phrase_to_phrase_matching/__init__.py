"""U.S. Patent Phrase to Phrase Matching: the similarity of two phrases in a technical field."""

from ...blocks import Metric, TableSplit, competition, corrected

COMPETITION = competition(
    "us-patent-phrase-to-phrase-matching",
    prepare=TableSplit(ids="id", targets="score", fill={"score": 0}),
    metric=Metric(grader="pearson", options={"keep_nan": True}),
    fixed=corrected(
        group="anchor",
        metric=Metric(grader="pearson"),
    ),
)
