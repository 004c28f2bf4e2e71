"""ML2021Spring-hw2: phonemes of speech frames, as NumPy arrays."""

from __future__ import annotations

from typing import IO, Any

from mleredux.errors import DataError

from mleredux_mlebench.blocks import Metric, Workspace, Written, competition

FOLDER = "timit_11/timit_11"


def chosen(array: Any, rows: Any) -> Written:
    """Rows of an array that may be larger than memory, as an npy file."""
    import numpy as np

    def write(file: IO[bytes]) -> None:
        np.save(file, array[rows])

    return Written(write)


def prepare(w: Workspace) -> None:
    """Split the frames in the ratio of the raw files."""
    import numpy as np
    import pandas as pd

    features, labels, unlabelled = (
        np.load(w.path(f"{FOLDER}/{name}_11.npy"), mmap_mode="r") for name in ("train", "train_label", "test")
    )
    if len(features) != len(labels):
        raise DataError("train_11.npy and train_label_11.npy have different lengths.", hint="Get the raw data again.")
    train, test = w.split(np.arange(len(features)), len(unlabelled) / (len(features) + len(unlabelled)))
    w.public(f"{FOLDER}/train_11.npy", chosen(features, train))
    w.public(f"{FOLDER}/train_label_11.npy", chosen(labels, train))
    w.public(f"{FOLDER}/test_11.npy", chosen(features, test))
    answers = pd.DataFrame({"Id": range(len(test)), "ClassId": np.asarray(labels[test])})
    w.public("sampleSubmission.csv", answers.assign(ClassId=0))
    w.private("answers.csv", answers)


COMPETITION = competition(
    "ml2021spring-hw2",
    prepare=prepare,
    answers="answers.csv",
    sample="sampleSubmission.csv",
    id_columns=("Id",),
    target_columns=("ClassId",),
    types={"ClassId": "integer"},
    metric=Metric(grader="accuracy"),
)
