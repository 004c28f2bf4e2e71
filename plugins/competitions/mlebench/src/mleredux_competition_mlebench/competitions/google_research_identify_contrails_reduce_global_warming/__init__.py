"""Identify Contrails to Reduce Global Warming: satellite image sequences as NumPy arrays, one folder per record."""

import random
from typing import Any

from ...blocks import Json, Metric, Workspace, competition, recipe

BANDS = [f"band_{number:02d}.npy" for number in range(8, 17)]
MASK, SINGLE_MASKS = "human_pixel_masks.npy", "human_individual_masks.npy"
EMPTY = "-"


def runs(mask: Any) -> str:
    """Return the start and length of each run of ones, with pixels counted from 1 down the columns; a hyphen if there
    are none.
    """
    import numpy as np

    pixels = np.concatenate([[0], mask.T.ravel() == 1, [0]]).astype(np.int8)
    starts, ends = (np.flatnonzero(np.diff(pixels) == step) for step in (1, -1))
    return " ".join(f"{start + 1} {end - start}" for start, end in zip(starts, ends, strict=True)) or EMPTY


@recipe("record_id", "encoded_pixels", answers="answers.csv")
def prepare(w: Workspace) -> None:
    """Hold out as many training records as there are validation records; their masks become the answers."""
    import numpy as np
    import pandas as pd

    records, validation = w.json("train_metadata.json"), w.json("validation_metadata.json")
    tree = w.tree("train")
    train, test = w.split(records, len(validation))
    rows = []
    for record in test:
        folder = record["record_id"]
        mask = np.load(w.path(f"train/{folder}/{MASK}"))
        height, width = np.load(w.path(f"train/{folder}/{BANDS[0]}"), mmap_mode="r").shape[:2]
        rows.append((folder, runs(mask[:, :, 0]), height, width))
    answers = pd.DataFrame(rows, columns=["record_id", "encoded_pixels", "height", "width"])
    draw = random.Random(w.seed(0))
    guesses = [draw.choice(["1 3 10 5", EMPTY]) for _ in rows]
    for part, chosen, files in (("train", train, [*BANDS, SINGLE_MASKS, MASK]), ("test", test, BANDS)):
        w.public(part, tree.pick([f"{record['record_id']}/{file}" for record in chosen for file in files]))
    w.public("validation", w.tree("validation").all())
    w.public("validation_metadata.json", w.file("validation_metadata.json"))
    w.public("train_metadata.json", Json(train))
    w.answers("answers.csv", "sample_submission.csv", answers, encoded_pixels=guesses)


COMPETITION = competition(
    "google-research-identify-contrails-reduce-global-warming",
    prepare=prepare,
    metric=Metric(grader="dice", options={"height": "height", "width": "width", "pooled": True, "empty_mark": EMPTY}),
)
