"""ML2021Spring-hw2: phonemes of speech frames, as NumPy arrays."""

from functools import partial
from typing import IO, Any

from mleredux.errors import DataError

from ...blocks import Metric, Workspace, Written, competition, recipe

FOLDER = "timit_11/timit_11"
STRETCH = 1_000
OVERLAP = 10
"""Number of rows before and after a row that share frames with it: each row contains 11 consecutive frames."""


def chosen(array: Any, rows: Any) -> Written:
    """Return a writer of selected rows, as an npy file, from an array that may be larger than memory."""
    import numpy as np

    def write(file: IO[bytes]) -> None:
        np.save(file, array[rows])

    return Written(write)


def apart(w: Workspace, count: int, share: float, stretch: int) -> tuple[Any, Any]:
    """Return shuffled training and test rows without common frames: stretches are held out, and their edges are
    omitted.
    """
    import numpy as np

    stretches = np.arange(count) // stretch
    _, held_out = w.split(np.arange(stretches[-1] + 1), share)
    is_test = np.isin(stretches, held_out)
    reach = np.convolve(is_test, np.ones(2 * OVERLAP + 1), mode="same") > 0
    shuffle = np.random.RandomState(w.seed(0)).permutation
    return shuffle(np.flatnonzero(~reach)), shuffle(np.flatnonzero(is_test))


@recipe("Id", "ClassId", answers="answers.csv", sample="sampleSubmission.csv")
def prepare(w: Workspace, stretch: int | None = None) -> None:
    """Split the frames in the ratio of the raw files.

    Args:
        stretch: Number of consecutive rows to hold out; the published split holds out single rows, which their
            neighbors reveal.
    """
    import numpy as np
    import pandas as pd

    features, labels, unlabelled = (
        np.load(w.path(f"{FOLDER}/{name}_11.npy"), mmap_mode="r") for name in ("train", "train_label", "test")
    )
    if len(features) != len(labels):
        raise DataError("train_11.npy and train_label_11.npy have different lengths.", hint="Get the raw data again.")
    count, share = len(features), len(unlabelled) / (len(features) + len(unlabelled))
    train, test = apart(w, count, share, stretch) if stretch else w.split(np.arange(count), share)
    w.public(f"{FOLDER}/train_11.npy", chosen(features, train))
    w.public(f"{FOLDER}/train_label_11.npy", chosen(labels, train))
    w.public(f"{FOLDER}/test_11.npy", chosen(features, test))
    answers = pd.DataFrame({"Id": range(len(test)), "ClassId": np.asarray(labels[test])})
    w.answers("answers.csv", "sampleSubmission.csv", answers, ClassId=0)


COMPETITION = competition(
    "ml2021spring-hw2",
    prepare=prepare,
    types={"ClassId": "integer"},
    metric=Metric(grader="accuracy"),
    fixed=partial(prepare, stretch=STRETCH),
)
