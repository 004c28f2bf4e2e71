"""SIIM-FISABIO-RSNA COVID-19 Detection: chest radiographs, labelled per study and boxed per image."""

from __future__ import annotations

from mleredux.errors import DataError

from mleredux_mlebench.blocks import Metric, Workspace, by_group, competition

STUDIES, IMAGES = "train_study_level.csv", "train_image_level.csv"
APPEARANCES = {
    "Negative for Pneumonia": "negative",
    "Typical Appearance": "typical",
    "Indeterminate Appearance": "indeterminate",
    "Atypical Appearance": "atypical",
}
WHOLE_IMAGE = " 1 0 0 1 1"


def prepare(w: Workspace) -> None:
    """Split the studies; images follow. Answers are the studies', then the images', each sorted by id."""
    import numpy as np
    import pandas as pd

    studies = w.table(STUDIES, ("id", *APPEARANCES))
    images = w.table(IMAGES, ("id", "boxes", "label", "StudyInstanceUID"))
    train, test = (part.sort_values("id") for part in w.split(studies))
    images = images.assign(study=images["StudyInstanceUID"].astype(str) + "_study")
    if not images["study"].isin(studies["id"]).all():
        raise DataError(f"{IMAGES} has images of studies that {STUDIES} lacks.", hint="Get the raw data again.")
    parts = by_group(images.sort_values("id"), "study", train["id"], test["id"])
    train_images, test_images = (part.drop(columns="study") for part in parts)
    words = np.array(list(APPEARANCES.values()), dtype=object)
    seen = words[test[list(APPEARANCES)].to_numpy().argmax(axis=1)] + WHOLE_IMAGE
    ids = pd.concat([test["id"], test_images["id"]])
    none = ["negative" + WHOLE_IMAGE] * len(test) + ["none" + WHOLE_IMAGE] * len(test_images)
    folders = w.tree("train")
    w.public(STUDIES, train)
    w.public(IMAGES, train_images)
    w.public("sample_submission.csv", pd.DataFrame({"id": ids, "PredictionString": none}))
    w.private("test.csv", pd.DataFrame({"id": ids, "PredictionString": [*seen, *test_images["label"]]}))
    for part, rows in (("train", train), ("test", test)):
        w.public(part, folders.pick_folders(rows["id"].str.removesuffix("_study")))


COMPETITION = competition(
    "siim-covid19-detection",
    prepare=prepare,
    id_columns=("id",),
    target_columns=("PredictionString",),
    metric=Metric(grader="average-precision-boxes", options={"iou": 0.5}),
)
