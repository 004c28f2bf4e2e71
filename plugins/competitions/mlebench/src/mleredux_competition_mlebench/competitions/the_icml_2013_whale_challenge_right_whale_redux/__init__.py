"""The ICML 2013 Whale Challenge - Right Whale Redux: labels are in the clips' names; two of four days are held out."""

import re

from mleredux.errors import DataError

from ...blocks import Metric, Workspace, Zip, competition, recipe

TRAIN_DAYS = 2


@recipe("clip", "probability", sample="sampleSubmission.csv")
def prepare(w: Workspace) -> None:
    """Use the first two days for training; clips are numbered in order of time."""
    import pandas as pd

    tree = w.tree("train2.zip", inside="train2")
    clips = tree.names(".aif")
    days = sorted({clip.partition("_")[0] for clip in clips})
    if len(days) <= TRAIN_DAYS or not all("TRAIN" in clip for clip in clips):
        raise DataError("train2.zip lacks clips of some days, or has other files.", hint="Get the raw data again.")
    train = [clip for clip in clips if clip.partition("_")[0] in days[:TRAIN_DAYS]]
    test = [clip for clip in clips if clip.partition("_")[0] in days[TRAIN_DAYS:]]
    numbered = [re.sub(r"TRAIN\d+", f"TRAIN{n}", clip) for n, clip in enumerate(train)]
    hidden = [f"{clip.partition('TRAIN')[0]}Test{n}.aif" for n, clip in enumerate(test)]
    answers = pd.DataFrame({"clip": hidden, "probability": [int(clip.endswith("_1.aif")) for clip in test]})
    w.public("train2.zip", Zip(tree.pick(train, numbered), folder="train2"))
    w.public("test2.zip", Zip(tree.pick(test, hidden), folder="test2"))
    w.answers("test.csv", "sampleSubmission.csv", answers, probability=0)


COMPETITION = competition(
    "the-icml-2013-whale-challenge-right-whale-redux",
    prepare=prepare,
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
)
