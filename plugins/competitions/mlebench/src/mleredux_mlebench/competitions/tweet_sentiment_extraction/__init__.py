"""Tweet Sentiment Extraction: the part of a message that carries its sentiment."""

from mleredux_mlebench.blocks import Metric, TableSplit, competition

COMPETITION = competition(
    "tweet-sentiment-extraction",
    prepare=TableSplit(ids="textID", targets="selected_text", fill={"selected_text": ""}),
    metric=Metric(grader="word-jaccard", options={"missing": "blank", "numbers": "text", "both_empty": "refuse"}),
)
