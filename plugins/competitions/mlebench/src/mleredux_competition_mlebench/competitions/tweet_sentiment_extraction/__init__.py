"""Tweet Sentiment Extraction: the part of a message that carries its sentiment."""

from dataclasses import replace

from ...blocks import Metric, TableSplit, competition, corrected

SPLIT = TableSplit(ids="textID", targets="selected_text", fill={"selected_text": ""})

COMPETITION = competition(
    "tweet-sentiment-extraction",
    prepare=SPLIT,
    metric=Metric(grader="word-jaccard", options={"missing": "blank", "numbers": "text", "both_empty": "refuse"}),
    fixed=corrected(
        replace(SPLIT, read={"keep_default_na": False}),
        metric=Metric(grader="word-jaccard", options={"missing": "blank", "numbers": "text", "both_empty": "one"}),
    ),
)
