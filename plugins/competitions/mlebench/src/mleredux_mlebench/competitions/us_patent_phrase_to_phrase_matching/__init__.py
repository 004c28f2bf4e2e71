"""U.S. Patent Phrase to Phrase Matching: how similar two phrases are in a technical field."""

from mleredux_mlebench.blocks import Metric, TableSplit, competition
from mleredux_mlebench.blocks.fixed import held_out_by

COMPETITION = competition(
    "us-patent-phrase-to-phrase-matching",
    prepare=TableSplit(ids="id", targets="score", fill={"score": 0}),
    metric=Metric(grader="pearson", options={"keep_nan": True}),
    variants={
        "fixed": held_out_by(
            "anchor",
            wrong="The same anchor phrase is in training and test.",
            done="Anchors are held out whole.",
        )
    },
)
