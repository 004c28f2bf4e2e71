"""TensorFlow Speech Recognition Challenge: one-second clips of single words in a 7z archive."""

from functools import partial

from ...blocks import Metric, Workspace, competition, recipe

NOISE = "_background_noise_"
COMMANDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")


@recipe("fname", "label")
def prepare(w: Workspace, speakers: bool = False) -> None:
    """Split the clips, sorted by label and name; test clips get running numbers.

    Args:
        speakers: Whether to hold out whole speakers and to use the labels of the contest; long noise recordings stay in
            the training part. In the published task, every folder is a label, and clips are split individually.
    """
    import pandas as pd

    tree = w.tree("train.7z", inside="train/audio")
    clips = pd.DataFrame({"path": [name for name in tree.files if name.endswith(".wav")]})
    parts = clips["path"].str.rsplit("/", n=2)
    clips["label"], clips["name"] = parts.str[-2], parts.str[-1]
    order = (clips["label"] + "_" + clips["name"]).sort_values().index
    clips = clips.loc[order]
    if speakers:
        noise = clips["label"] == NOISE
        train, test = w.split_groups(clips[~noise], clips["name"].str.partition("_")[0][~noise])
        test = test.iloc[w.shuffled(len(test))]  # otherwise the numbers would follow the labels
        train = pd.concat([train, clips[noise]])
        labels = test["label"].where(test["label"].isin(COMMANDS), "unknown")
    else:
        train, test = w.split(clips)
        labels = test["label"]
    answers = pd.DataFrame({"fname": [f"clip_{n:08d}.wav" for n in range(len(test))], "label": list(labels)})
    w.public("train/audio", tree.pick(train["path"], train["label"] + "/" + train["name"]))
    w.public("test/audio", tree.pick(test["path"], answers["fname"]))
    w.answers("test.csv", "sample_submission.csv", answers, label="silence")


COMPETITION = competition(
    "tensorflow-speech-recognition-challenge",
    prepare=prepare,
    metric=Metric(grader="accuracy"),
    fixed=partial(prepare, speakers=True),
)
