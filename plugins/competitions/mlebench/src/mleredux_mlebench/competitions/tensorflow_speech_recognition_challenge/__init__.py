"""TensorFlow Speech Recognition Challenge: one-second clips of single words in a 7z archive."""

from __future__ import annotations

from mleredux_mlebench.blocks import Metric, Workspace, competition


def prepare(w: Workspace) -> None:
    """Split the clips, sorted by label and name; test clips get running numbers."""
    import pandas as pd

    tree = w.tree("train.7z", inside="train/audio")
    clips = pd.DataFrame({"path": [name for name in tree.files if name.endswith(".wav")]})
    parts = clips["path"].str.rsplit("/", n=2)
    clips["label"], clips["name"] = parts.str[-2], parts.str[-1]
    order = (clips["label"] + "_" + clips["name"]).sort_values().index
    train, test = w.split(clips.loc[order])
    answers = pd.DataFrame({"fname": [f"clip_{n:08d}.wav" for n in range(len(test))], "label": list(test["label"])})
    w.public("train/audio", tree.pick(train["path"], train["label"] + "/" + train["name"]))
    w.public("test/audio", tree.pick(test["path"], answers["fname"]))
    w.public("sample_submission.csv", answers.assign(label="silence"))
    w.private("test.csv", answers)


COMPETITION = competition(
    "tensorflow-speech-recognition-challenge",
    prepare=prepare,
    id_columns=("fname",),
    target_columns=("label",),
    metric=Metric(grader="accuracy"),
)
