"""HuBMAP - Hacking the Kidney: glomeruli in a handful of huge microscope images."""

from __future__ import annotations

from functools import partial

from mleredux_mlebench.blocks import Metric, Workspace, competition
from mleredux_mlebench.blocks.fixed import prepared_by

INFORMATION = "HuBMAP-20-dataset_information.csv"
SIZES = ["width_pixels", "height_pixels"]
REGIONS, TARGETS = "-anatomical-structure.json", ".json"


def prepare(w: Workspace, outlined: bool = True) -> None:
    """Hold out three images; the sizes of each are joined to its answers.

    Args:
        outlined: Whether the outlines of the glomeruli of test images are public too, as published.
    """
    rows = w.table("train.csv", ("id", "encoding"))
    information = w.table(INFORMATION, ("image_file", *SIZES))
    names = information["image_file"].str.replace(".tiff", "", regex=False)
    train, test = w.split(rows, 3)
    images = w.tree("train")
    sample = test[["id"]].assign(predicted="")
    w.public(INFORMATION, information[names.isin(rows["id"])])
    w.public("train.csv", train)
    for name in ("sample_submission.csv", "test/sample_submission.csv"):
        w.public(name, sample)
    for part, chosen in (("train", train), ("test", test)):
        ends = [".tiff", REGIONS, TARGETS] if outlined or part == "train" else [".tiff", REGIONS]
        w.public(part, images.pick([id + end for id in chosen["id"] for end in ends]))
    w.private("test.csv", test.merge(information[SIZES].assign(id=names), on="id"))
    w.private("gold_submission.csv", test[["id"]].assign(predicted=test["encoding"]))


COMPETITION = competition(
    "hubmap-kidney-segmentation",
    prepare=prepare,
    id_columns=("id",),
    target_columns=("predicted",),
    metric=Metric(
        grader="dice",
        options={"height": "height_pixels", "width": "width_pixels", "truth": ["encoding"], "missing": "blank"},
    ),
    variants={
        "fixed": prepared_by(
            partial(prepare, outlined=False),
            wrong="The outlines of the objects to find in the test images are public.",
            done="They are left out; images of one donor may still be on both sides, as there are only 15.",
        )
    },
)
