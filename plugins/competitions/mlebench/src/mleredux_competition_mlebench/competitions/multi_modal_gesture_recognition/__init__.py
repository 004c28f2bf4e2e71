"""Multi-modal Gesture Recognition: the recordings of one of four training archives are held out."""

import random
from functools import partial

from mleredux.errors import DataError

from mleredux_competition_mlebench.competitions.multi_modal_gesture_recognition.labels import without_labels

from ...blocks import Metric, Workspace, Written, by_group, competition, recipe

GESTURES = range(1, 21)
HELD_OUT = "training4.tar.gz"
COPIES = (
    *(f"{kind}{number}.tar.gz" for kind in ("training", "validation") for number in (1, 2, 3)),
    "devel01-40.7z",
    "valid_all_files_combined.7z",
    "sample_code_mmrgc.zip",
)


@recipe("Id", "Sequence", sample="randomPredictions.csv")
def prepare(w: Workspace, labelled: bool = True) -> None:
    """Prepare the files; recordings are named by the last four digits of their file.

    Args:
        labeled: Whether the MATLAB files of test recordings keep their labels, as published.
    """
    import pandas as pd

    rows = w.table("training.csv", ("Id", "Sequence"), dtype=str)
    tree = w.tree(HELD_OUT)
    ids = sorted(name.removesuffix(".zip")[-4:] for name in tree.names(".zip") if "/" not in name)
    if not ids or set(ids) - set(rows["Id"]):
        raise DataError(f"Not every recording of {HELD_OUT} is in training.csv.", hint="Get the raw data again.")
    train, test = by_group(rows, "Id", set(rows["Id"]) - set(ids), ids)
    draw = random.Random(0)  # guesses reveal nothing about the answers, so `+private` need not replace this draw
    guesses = [" ".join(map(str, draw.sample(GESTURES, len(GESTURES)))) for _ in ids]
    w.public("training.csv", train)
    w.public("test.csv", pd.DataFrame({"Id": ids}))
    w.public("randomPredictions.csv", pd.DataFrame({"Id": ids, "Sequence": guesses}))
    w.public("test.tar.gz", w.file(HELD_OUT) if labelled else Written(partial(without_labels, tree)))
    for name in COPIES:
        w.public(name, w.file(name))
    w.private("test.csv", test)


COMPETITION = competition(
    "multi-modal-gesture-recognition",
    prepare=prepare,
    metric=Metric(grader="levenshtein", options={"tokens": "integers", "average": "pooled", "numbers": "text"}),
    fixed=partial(prepare, labelled=False),
)
